import {
  Controller,
  Get,
  HttpCode,
  Inject,
  type MessageEvent,
  Param,
  Post,
  Query,
  Req,
  Res,
  Sse,
} from '@nestjs/common';
import { ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { connect, interval, last, map, merge, type Observable, takeUntil } from 'rxjs';
import { Caller, Needs } from '../access/needs.ts';
import type { Principal } from '../access/principal.ts';
import { checked } from '../http/checked.ts';
import { idempotencyOf } from '../http/idempotency-key.ts';
import { assertNoBody } from '../http/json-body.ts';
import type { Page } from '../http/page.ts';
import { Answers, BODY_PROBLEMS, TakesIdempotencyKey } from '../openapi/answers.ts';
import {
  OperationPageSchema,
  type OperationQuery,
  OperationQuerySchema,
  OperationSchema,
  type OperationView,
} from '../schemas/operation.ts';
import { OPERATION_FEED, OPERATIONS_ASKED } from '../tokens.ts';
import type { OperationFeed } from './operation-feed.ts';
import { toOperationView } from './operation-view.ts';
import type { Operations } from './operations.ts';

/** A comment now and then keeps proxies from closing a stream in which nothing happens. */
const KEEP_ALIVE_MS = 15_000;

@ApiTags('operations')
@Controller('v1/operations')
export class OperationsController {
  readonly #operations: Operations;
  readonly #feed: OperationFeed;

  constructor(@Inject(OPERATIONS_ASKED) operations: Operations, @Inject(OPERATION_FEED) feed: OperationFeed) {
    this.#operations = operations;
    this.#feed = feed;
  }

  @Get()
  @Needs('viewer')
  @Answers(200, 'Operations, newest first', OperationPageSchema, ['invalid_request'])
  listOperations(
    @Caller() caller: Principal,
    @Query(checked(OperationQuerySchema)) query: OperationQuery,
  ): Promise<Page<OperationView>> {
    return this.#operations.list(caller, query);
  }

  @Get(':id')
  @Needs('viewer')
  @Answers(200, 'The operation', OperationSchema, ['not_found'])
  async getOperation(@Caller() caller: Principal, @Param('id') id: string): Promise<OperationView> {
    return toOperationView(await this.#operations.find(caller, id));
  }

  @Sse(':id/events')
  @Needs('viewer')
  @ApiProduces('text/event-stream')
  @Answers(200, 'Events named `operation`, each with the whole operation, until it has ended', OperationSchema, [
    'not_found',
  ])
  async followOperation(@Caller() caller: Principal, @Param('id') id: string): Promise<Observable<MessageEvent>> {
    const operation = await this.#operations.find(caller, id);
    return this.#feed.follow(operation).pipe(
      connect((views) =>
        merge(
          views.pipe(map((data): MessageEvent => ({ type: 'operation', data }))),
          interval(KEEP_ALIVE_MS).pipe(
            map((): MessageEvent => ({ comment: '' })),
            takeUntil(views.pipe(last(null, null))),
          ),
        ),
      ),
    );
  }

  @Post(':id/cancel')
  @HttpCode(202)
  @Needs('developer')
  @TakesIdempotencyKey()
  @Answers(202, 'The operation: cancelled, or asked to stop at its next effect', OperationSchema, [
    ...BODY_PROBLEMS,
    'not_found',
    'operation_finished',
    'operation_blocked',
    'idempotency_mismatch',
  ])
  async cancelOperation(
    @Caller() caller: Principal,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OperationView> {
    assertNoBody(request.body);
    await this.#operations.cancel(caller, id, idempotencyOf(request, caller));
    void reply.header('location', `/v1/operations/${id}`);
    return toOperationView(await this.#operations.find(caller, id));
  }
}
