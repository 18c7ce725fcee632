import { Controller, Get, Headers, Inject, Param, Query, Res, StreamableFile } from '@nestjs/common';
import { ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Caller, Needs } from '../access/needs.ts';
import type { Principal } from '../access/principal.ts';
import type { Environments } from '../environments/environments.ts';
import { checked } from '../http/checked.ts';
import { Answers } from '../openapi/answers.ts';
import { type LogQuery, LogQuerySchema, LogSchema, type LogView } from '../schemas/log.ts';
import { ENVIRONMENTS, SERVICE_LOGS } from '../tokens.ts';
import type { ServiceLogs } from './service-logs.ts';

const EVENT_STREAM = 'text/event-stream';

@ApiTags('environments')
@Controller('v1/environments/:id/services/:name/logs')
export class LogsController {
  readonly #environments: Environments;
  readonly #logs: ServiceLogs;

  constructor(@Inject(ENVIRONMENTS) environments: Environments, @Inject(SERVICE_LOGS) logs: ServiceLogs) {
    this.#environments = environments;
    this.#logs = logs;
  }

  /** What an application writes may hold data of its users, so seeing the environment is not enough. */
  @Get()
  @Needs('developer')
  @ApiProduces('application/json', EVENT_STREAM)
  @Answers(
    200,
    'What the service wrote. Followed, or asked for as an event stream: events `line` (a line as in `items`), `gap` ' +
      '(so many lines are `missing` here, since the reader was too slow) and, last, `end` (with its `reason`); one hour at most',
    LogSchema,
    [
      'invalid_request',
      'not_found',
      'environment_not_ready',
      'environment_deleted',
      'rate_limited',
      'host_unavailable',
      'daemon_unreachable',
    ],
  )
  async getServiceLogs(
    @Caller() caller: Principal,
    @Param('id') id: string,
    @Param('name') name: string,
    @Query(checked(LogQuerySchema)) query: LogQuery,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<LogView | StreamableFile> {
    const environment = await this.#environments.find(caller, id);
    const asEvents = query.follow === 'true' || accept?.includes(EVENT_STREAM) === true;
    if (!asEvents) return this.#logs.read(caller, environment, name, query);
    const stream = await this.#logs.stream(caller, environment, name, query);
    void reply.header('x-accel-buffering', 'no');
    return new StreamableFile(stream, { type: EVENT_STREAM });
  }
}
