import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { CatalogSource } from '#catalog';
import type { Logger } from '#kernel';
import type { CatalogLink } from './catalog-link.ts';
import { GatewayModule } from './gateway.module.ts';
import { gatewayMetrics } from './health/metrics.ts';
import { fastifyAdapter } from './http/server.ts';
import { nestLogger } from './nest-logger.ts';
import { openApiDocument } from './openapi/document.ts';

export interface GatewayOptions {
  readonly source: CatalogSource;
  readonly link: CatalogLink;
  readonly logger: Logger;
  readonly sealingKey: () => Buffer;
  readonly caFile: string;
  readonly brokerUrl: string;
}

export interface Gateway {
  readonly app: NestFastifyApplication;
  readonly document: () => OpenAPIObject;
}

/** Everything wired, nothing listening yet. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const metrics = gatewayMetrics(options.source);
  let made: OpenAPIObject | undefined;
  // Made when it is asked for first: it costs time and memory that few processes need.
  const document = (): OpenAPIObject => (made ??= openApiDocument(app));
  const app: NestFastifyApplication = await NestFactory.create<NestFastifyApplication>(
    GatewayModule.of({ ...options, metrics, document }),
    fastifyAdapter(metrics),
    { bodyParser: false, logger: nestLogger(options.logger), abortOnError: false },
  );
  return { app, document };
}
