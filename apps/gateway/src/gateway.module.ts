import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, Reflector } from '@nestjs/core';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { CatalogSource } from '#catalog';
import type { Logger } from '#kernel';
import { derivedKey } from '#settings';
import { AccessGuard } from './access/access.guard.ts';
import { ApiKeys } from './access/api-keys.ts';
import { Admin } from './admin/admin.ts';
import { AdminController } from './admin/admin.controller.ts';
import { Registries } from './admin/registries.ts';
import { RegistriesController } from './admin/registries.controller.ts';
import type { CatalogLink } from './catalog-link.ts';
import { Credentials } from './environments/credentials.ts';
import { Environments } from './environments/environments.ts';
import { EnvironmentsController } from './environments/environments.controller.ts';
import { HealthController } from './health/health.controller.ts';
import type { GatewayMetrics } from './health/metrics.ts';
import { ProblemFilter } from './http/problem.filter.ts';
import { LogsController } from './logs/logs.controller.ts';
import { ServiceLogs } from './logs/service-logs.ts';
import { NotBuiltController } from './not-built.controller.ts';
import { OperationFeed } from './operations/operation-feed.ts';
import { Operations } from './operations/operations.ts';
import { OperationsController } from './operations/operations.controller.ts';
import { Projects } from './projects/projects.ts';
import { ProjectsController } from './projects/projects.controller.ts';
import {
  ADMIN,
  CATALOG_LINK,
  CREDENTIALS,
  DIGEST_KEY,
  ENVIRONMENTS,
  GATEWAY_METRICS,
  OPENAPI_DOCUMENT,
  OPERATION_FEED,
  OPERATIONS_ASKED,
  PROJECTS,
  REGISTRIES,
  SERVICE_LOGS,
} from './tokens.ts';

export interface GatewayParts {
  readonly source: CatalogSource;
  readonly link: CatalogLink;
  readonly metrics: GatewayMetrics;
  readonly logger: Logger;
  /** Read when it is needed first: documents can be made without it. */
  readonly sealingKey: () => Buffer;
  readonly caFile: string;
  readonly brokerUrl: string;
  readonly document: () => OpenAPIObject;
}

@Module({})
export class GatewayModule {
  static of(parts: GatewayParts): DynamicModule {
    const { source, link, metrics, logger, sealingKey, caFile, brokerUrl, document } = parts;
    const projects = new Projects(source);
    const given = [
      { provide: CATALOG_LINK, useValue: link },
      { provide: GATEWAY_METRICS, useValue: metrics },
      { provide: OPENAPI_DOCUMENT, useValue: document },
      { provide: PROJECTS, useValue: projects },
      { provide: ENVIRONMENTS, useValue: new Environments(source, projects, sealingKey, logger) },
      { provide: CREDENTIALS, useValue: new Credentials(source, sealingKey, caFile) },
      { provide: OPERATIONS_ASKED, useValue: new Operations(source, logger) },
      { provide: OPERATION_FEED, useValue: OperationFeed.of(source, logger) },
      { provide: SERVICE_LOGS, useValue: new ServiceLogs(brokerUrl) },
      { provide: ADMIN, useValue: new Admin(source) },
      { provide: REGISTRIES, useValue: new Registries(source, sealingKey) },
      { provide: DIGEST_KEY, useValue: () => derivedKey(sealingKey(), 'idempotency') },
    ];
    return {
      module: GatewayModule,
      controllers: [
        ProjectsController,
        EnvironmentsController,
        LogsController,
        OperationsController,
        AdminController,
        RegistriesController,
        HealthController,
        NotBuiltController,
      ],
      providers: [
        ...given,
        {
          provide: APP_GUARD,
          inject: [Reflector],
          useFactory: (reflector: Reflector) => new AccessGuard(ApiKeys.of(source), reflector),
        },
        { provide: APP_FILTER, useValue: new ProblemFilter(logger) },
      ],
    };
  }
}
