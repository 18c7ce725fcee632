import { Body, Controller, Delete, Get, Headers, HttpCode, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiHeader, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OPERATIONS } from '#protocol';
import { Caller, Needs } from '../access/needs.ts';
import type { Principal } from '../access/principal.ts';
import { etagOf, expectedVersion, matchesEtag } from '../http/etag.ts';
import { checked } from '../http/checked.ts';
import { idempotencyOf } from '../http/idempotency-key.ts';
import { assertNoBody } from '../http/json-body.ts';
import type { Page } from '../http/page.ts';
import { Answers, BODY_PROBLEMS, TakesIdempotencyKey } from '../openapi/answers.ts';
import { toOperationView } from '../operations/operation-view.ts';
import type { Operations } from '../operations/operations.ts';
import {
  CredentialsSchema,
  type CredentialsView,
  EnvironmentPageSchema,
  type EnvironmentQuery,
  EnvironmentQuerySchema,
  EnvironmentSchema,
  type EnvironmentToCreate,
  EnvironmentToCreateSchema,
  type EnvironmentView,
} from '../schemas/environment.ts';
import { OperationSchema, type OperationView } from '../schemas/operation.ts';
import { CREDENTIALS, DIGEST_KEY, ENVIRONMENTS, OPERATIONS_ASKED } from '../tokens.ts';
import type { Credentials } from './credentials.ts';
import { shownVersion, toEnvironmentView } from './environment-view.ts';
import type { Environments } from './environments.ts';
import { haveSecrets } from './services.ts';

@ApiTags('environments')
@Controller('v1')
export class EnvironmentsController {
  readonly #environments: Environments;
  readonly #credentials: Credentials;
  readonly #operations: Operations;
  readonly #digestKey: () => Buffer;

  constructor(
    @Inject(ENVIRONMENTS) environments: Environments,
    @Inject(CREDENTIALS) credentials: Credentials,
    @Inject(OPERATIONS_ASKED) operations: Operations,
    @Inject(DIGEST_KEY) digestKey: () => Buffer,
  ) {
    this.#environments = environments;
    this.#credentials = credentials;
    this.#operations = operations;
    this.#digestKey = digestKey;
  }

  @Get('projects/:project/environments')
  @Needs('viewer')
  @Answers(200, 'Environments of the project, oldest first, without deleted ones', EnvironmentPageSchema, [
    'invalid_request',
    'not_found',
  ])
  listEnvironments(
    @Caller() caller: Principal,
    @Param('project') project: string,
    @Query(checked(EnvironmentQuerySchema)) query: EnvironmentQuery,
  ): Promise<Page<EnvironmentView>> {
    return this.#environments.list(caller, project, query);
  }

  @Post('projects/:project/environments')
  @HttpCode(202)
  @Needs(OPERATIONS['environment.create'].role)
  @TakesIdempotencyKey()
  @Answers(202, 'The operation that makes it', OperationSchema, [
    ...BODY_PROBLEMS,
    'not_found',
    'environment_exists',
    'no_engine',
    'insufficient_capacity',
    'ports_unavailable',
    'services_unavailable',
    'idempotency_mismatch',
  ])
  async createEnvironment(
    @Caller() caller: Principal,
    @Param('project') project: string,
    @Body(checked(EnvironmentToCreateSchema)) body: EnvironmentToCreate,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OperationView> {
    const digestKey = haveSecrets(body.services) ? this.#digestKey() : undefined;
    const id = await this.#environments.create(caller, project, body, idempotencyOf(request, caller, digestKey));
    return this.#accepted(caller, id, reply);
  }

  @Get('environments/:id')
  @Needs('viewer')
  @ApiHeader({ name: 'If-None-Match', required: false, description: 'An `ETag`: 304 while nothing has changed' })
  @Answers(200, 'The environment; a deleted one too', EnvironmentSchema, ['not_found'])
  async getEnvironment(
    @Caller() caller: Principal,
    @Param('id') id: string,
    @Headers('if-none-match') known: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EnvironmentView | undefined> {
    const environment = await this.#environments.find(caller, id);
    const version = shownVersion(environment);
    void reply.header('etag', etagOf(version));
    if (!matchesEtag(known, version)) return toEnvironmentView(environment);
    void reply.code(304);
    return undefined;
  }

  @Delete('environments/:id')
  @HttpCode(202)
  @Needs(OPERATIONS['environment.delete'].role)
  @TakesIdempotencyKey()
  @ApiHeader({ name: 'If-Match', required: false, description: 'An `ETag`: refused when the environment has changed' })
  @Answers(202, 'The operation that removes it; also beside one that has not ended', OperationSchema, [
    ...BODY_PROBLEMS,
    'not_found',
    'environment_busy',
    'environment_deleted',
    'idempotency_mismatch',
    'precondition_failed',
  ])
  async deleteEnvironment(
    @Caller() caller: Principal,
    @Param('id') id: string,
    @Headers('if-match') expected: string | undefined,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OperationView> {
    assertNoBody(request.body);
    const environment = await this.#environments.find(caller, id);
    const operationId = await this.#environments.remove(caller, environment, {
      ...idempotencyOf(request, caller),
      ...expectedVersion(expected, environment.version),
    });
    return this.#accepted(caller, operationId, reply);
  }

  @Get('environments/:id/credentials')
  @Needs('developer')
  @Answers(200, 'The logins; each look is audited', CredentialsSchema, [
    'not_found',
    'environment_not_ready',
    'environment_deleted',
  ])
  async getCredentials(@Caller() caller: Principal, @Param('id') id: string): Promise<CredentialsView> {
    return this.#credentials.show(caller, await this.#environments.find(caller, id));
  }

  async #accepted(caller: Principal, operationId: string, reply: FastifyReply): Promise<OperationView> {
    void reply.header('location', `/v1/operations/${operationId}`);
    return toOperationView(await this.#operations.find(caller, operationId));
  }
}
