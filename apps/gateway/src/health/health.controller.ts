import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import {
  ApiExcludeEndpoint,
  ApiProduces,
  ApiResponse,
  ApiSecurity,
  ApiTags,
  type OpenAPIObject,
} from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Needs } from '../access/needs.ts';
import type { CatalogLink } from '../catalog-link.ts';
import { Refuses } from '../openapi/answers.ts';
import { CATALOG_LINK, GATEWAY_METRICS, OPENAPI_DOCUMENT } from '../tokens.ts';
import type { GatewayMetrics } from './metrics.ts';

/** Open to everybody who reaches the port: nothing here speaks of a project. */
@ApiTags('health')
@ApiSecurity({})
@Needs('nobody')
@Controller()
export class HealthController {
  readonly #link: CatalogLink;
  readonly #metrics: GatewayMetrics;
  readonly #document: () => OpenAPIObject;

  constructor(
    @Inject(CATALOG_LINK) link: CatalogLink,
    @Inject(GATEWAY_METRICS) metrics: GatewayMetrics,
    @Inject(OPENAPI_DOCUMENT) document: () => OpenAPIObject,
  ) {
    this.#link = link;
    this.#metrics = metrics;
    this.#document = document;
  }

  @Get('health/live')
  @ApiResponse({ status: 200, description: 'The process answers' })
  live(): { readonly status: 'live' } {
    return { status: 'live' };
  }

  @Get('health/ready')
  @ApiResponse({ status: 200, description: 'Requests can be served' })
  @Refuses(['catalog_unavailable'])
  async ready(): Promise<{ readonly status: 'ready' }> {
    await this.#link.assertReady();
    return { status: 'ready' };
  }

  @Get('metrics')
  @ApiProduces('text/plain')
  @ApiResponse({ status: 200, description: 'Text format of Prometheus' })
  async metrics(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    void reply.type(this.#metrics.contentType);
    return this.#metrics.render();
  }

  @Get('openapi.json')
  @ApiExcludeEndpoint()
  @Header('content-type', 'application/json; charset=utf-8')
  openapi(): OpenAPIObject {
    return this.#document();
  }
}
