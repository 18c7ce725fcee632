/**
 * The jobs of a host, as a NestJS microservice (DESIGN §9, "Jobs").
 *
 * - One handler at a time in this process, whatever the broker sends, and on however many channels: a redelivery waits
 *   until the handler that runs has ended.
 * - A delivery is acknowledged after its handler has completed, never before.
 * - A handler that fails gives the delivery back after a pause; the queue's delivery limit ends that.
 */
import { EventEmitter, once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Logger } from '#kernel';
import { BaseRpcContext, Server, type CustomTransportStrategy } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { parseJobMessage, type JobMessage } from './job-message.ts';
import { Subscription, type Delivery, type SubscriptionStatus } from './subscription.ts';
import type { JobTopology } from './topology.ts';

/** `@EventPattern(JOB_PATTERN)`; the handler gets a `JobMessage`, and is done when what it returns is. */
export const JOB_PATTERN = 'surefoot.job';

export interface JobServerOptions {
  readonly url: string;
  readonly topology: JobTopology;
  readonly logger: Logger;
  /** Before a failed delivery goes back; doubles each time. Told by tests. */
  readonly pauses?: { readonly firstMs: number; readonly mostMs: number };
}

export interface JobServerReport {
  readonly status: SubscriptionStatus;
  /** A sentence for people. */
  readonly detail: string;
  readonly since: Date;
}

/** A type, not an interface, which would lack the index signature that Nest asks for. */
type JobServerEvents = { status: (report: JobServerReport) => void };

/** A state that lasts is told again this often when its reason changes. */
const LOG_AGAIN_MS = 60_000;
const PAUSES = { firstMs: 200, mostMs: 5_000 };

export class JobServer extends Server<JobServerEvents, SubscriptionStatus> implements CustomTransportStrategy {
  /** Ours waits for the handler and sees its failure, so Nest need not report it. */
  override readonly propagatesEventHandlerErrors = true;
  override readonly transportId = Symbol('surefoot.jobs');
  readonly #logger: Logger;
  readonly #pauses: typeof PAUSES;
  readonly #subscription: Subscription;
  readonly #events = new EventEmitter();
  readonly #closing = new AbortController();
  readonly #waiting: Delivery[] = [];
  #running = false;
  #loggedAtMs = -Infinity;
  #report: JobServerReport = { status: 'connecting', detail: 'not connected yet', since: new Date() };

  constructor({ url, topology, logger, pauses = PAUSES }: JobServerOptions) {
    super();
    this.#logger = logger;
    this.#pauses = pauses;
    this.#subscription = new Subscription({
      url,
      topology,
      logger,
      name: `surefoot worker ${topology.queue}`,
      onDelivery: (delivery) => this.#accept(delivery),
      onStatus: (status, detail) => this.#change(status, detail),
    });
  }

  /** Calls back at once: a worker starts without its broker too, and looks into the catalog by itself. */
  listen(callback: () => void): void {
    this.#subscription.start();
    callback();
  }

  /** Returns when the handler in flight has ended; who calls it bounds that, by ending the handler. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#subscription.stopConsuming();
    for (const delivery of this.#waiting.splice(0)) delivery.settle('requeue');
    if (this.#running) await once(this.#events, 'idle');
    await this.#subscription.close();
  }

  get report(): JobServerReport {
    return this.#report;
  }

  on<Name extends keyof JobServerEvents>(event: Name, callback: JobServerEvents[Name]): void {
    this.#events.on(event, callback);
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- Nest's signature
  unwrap<T>(): T {
    return this.#subscription as T;
  }

  #change(status: SubscriptionStatus, detail: string): void {
    const before = this.#report;
    if (before.status === status && before.detail === detail) return;
    this.#report = { status, detail, since: before.status === status ? before.since : new Date() };
    this.#events.emit('status', this.#report);
    // While a broker starts, each attempt fails in another way: they are one change.
    if (before.status === status && performance.now() - this.#loggedAtMs < LOG_AGAIN_MS) return;
    this.#loggedAtMs = performance.now();
    this.#logger[status === 'refused' ? 'error' : 'info']('job subscription changed', { status, detail });
    this._status$.next(status);
  }

  #accept(delivery: Delivery): void {
    if (this.#closing.signal.aborted) {
      delivery.settle('requeue');
      return;
    }
    this.#waiting.push(delivery);
    if (!this.#running) void this.#work();
  }

  async #work(): Promise<void> {
    this.#running = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      // One whose channel went while it waited comes again, on the channel that there is now.
      if (next.isCurrent()) await this.#handle(next);
    }
    this.#running = false;
    this.#events.emit('idle');
  }

  async #handle(delivery: Delivery): Promise<void> {
    const message = parseJobMessage(delivery.content);
    if ('fault' in message) {
      this.#logger.warn('malformed job message to dead letters', { detail: message.fault });
      delivery.settle('reject');
      return;
    }
    const { jobId } = message;
    try {
      await this.#run(message);
      if (!delivery.settle('ack')) this.#logger.info('delivery outlived its channel, it comes again', { jobId });
    } catch (error) {
      const pauseMs = Math.min(this.#pauses.firstMs * 2 ** delivery.earlierDeliveries, this.#pauses.mostMs);
      this.#logger.warn('job handler failed, delivery goes back', { jobId, pauseMs, error });
      await setTimeout(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      delivery.settle('requeue');
    }
  }

  async #run(message: JobMessage): Promise<void> {
    const handler = this.getHandlerByPattern(JOB_PATTERN);
    if (handler === null) throw new TypeError(`no handler for ${JOB_PATTERN}`);
    const result: unknown = await handler(message, new BaseRpcContext([]));
    await lastValueFrom(this.transformToObservable(result), { defaultValue: undefined });
  }
}
