/**
 * The worker's side of logs: requests in, answers out, on connections of their own, so that neither a full channel nor a
 * failed one touches the jobs. A broker that is away is waited for; a request that was lost with it is asked again by whoever
 * still wants it.
 */
import type { Logger } from '#kernel';
import type { ChannelModel, ConsumeMessage } from 'amqplib';
import { BackOff } from './back-off.ts';
import { closeConnection, openConnection, within } from './connection.ts';
import { BrokerUnavailable, brokerError } from './errors.ts';
import {
  type LogAnswer,
  logAnswerQueue,
  logMessage,
  type LogRequest,
  logRequestQueue,
  parseLogRequest,
} from './log-messages.ts';
import { Publisher } from './publisher.ts';

export interface LogServerOptions {
  readonly url: string;
  readonly hostId: string;
  readonly logger: Logger;
  /** @param answer says whether anybody reads it; false is for good */
  readonly onRequest: (request: LogRequest, answer: (message: LogAnswer) => Promise<boolean>) => void;
}

const ANSWER_TIMEOUT_MS = 5_000;
/** A reader whose connection outlived ours may still be there. */
const TRY_FOR_MS = 10_000;

export class LogServer {
  readonly #options: LogServerOptions;
  readonly #stopping = new AbortController();
  readonly #publisher: Publisher;
  #running: Promise<void> | undefined;
  #serving: boolean | undefined;

  constructor(options: LogServerOptions) {
    this.#options = options;
    const { url, hostId } = options;
    this.#publisher = new Publisher({
      url,
      name: `surefoot logs of ${hostId}, answers`,
      deadlineMs: ANSWER_TIMEOUT_MS,
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** No request from here on, and no answer. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#running, this.#publisher.close()]);
  }

  async #run(): Promise<void> {
    const backOff = new BackOff();
    while (!this.#stopping.signal.aborted) {
      const why = await this.#serve(() => {
        backOff.reset();
        this.#tell(true, 'subscribed');
      }).catch((error: unknown) => brokerError('serving logs', error).message);
      if (!this.#stopping.signal.aborted) this.#tell(false, why);
      await backOff.wait(this.#stopping.signal);
    }
  }

  /** @returns why it ended */
  async #serve(onReady: () => void): Promise<string> {
    const { url, hostId } = this.#options;
    const connection = await openConnection(url, `surefoot logs of ${hostId}, requests`);
    try {
      return await this.#consume(connection, onReady);
    } finally {
      await closeConnection(connection);
    }
  }

  async #consume(connection: ChannelModel, onReady: () => void): Promise<string> {
    const end = Promise.withResolvers<string>();
    this.#stopping.signal.addEventListener('abort', () => end.resolve('closed on request'), { once: true });
    connection.once('close', () => end.resolve('the connection was lost'));
    const channel = await within(ANSWER_TIMEOUT_MS, 'opening a channel', connection.createChannel());
    channel.on('error', (error) => end.resolve(`the broker closed the channel (${error.message})`));
    channel.once('close', () => end.resolve('the channel was closed'));
    const queue = logRequestQueue(this.#options.hostId);
    // Gone with this connection: a request that nobody can serve is returned to its sender at once.
    const declared = channel.assertQueue(queue, { exclusive: true, durable: false, autoDelete: true });
    await within(ANSWER_TIMEOUT_MS, `declaring queue ${queue}`, declared);
    const consuming = channel.consume(
      queue,
      (message) => {
        if (message === null) end.resolve('the broker cancelled the consumer');
        else this.#accept(message);
      },
      { noAck: true },
    );
    await within(ANSWER_TIMEOUT_MS, 'subscribing', consuming);
    onReady();
    return end.promise;
  }

  #accept({ content }: ConsumeMessage): void {
    const { logger, onRequest } = this.#options;
    const request = parseLogRequest(content);
    if ('fault' in request) logger.warn('malformed log request dropped', { detail: request.fault });
    else if (!this.#stopping.signal.aborted) onRequest(request, (message) => this.#answer(request.id, message));
  }

  async #answer(requestId: string, message: LogAnswer): Promise<boolean> {
    const outgoing = {
      exchange: '',
      routingKey: logAnswerQueue(requestId),
      body: logMessage(message),
      transient: true,
    } as const;
    const giveUpAtMs = performance.now() + TRY_FOR_MS;
    for (const backOff = new BackOff(); ;) {
      try {
        const [outcome] = await this.#publisher.publish([outgoing]);
        return outcome === 'confirmed';
      } catch (error) {
        if (!(error instanceof BrokerUnavailable)) throw error;
        if (this.#stopping.signal.aborted || performance.now() > giveUpAtMs) return false;
      }
      await backOff.wait(this.#stopping.signal);
    }
  }

  /** While a broker is away, each attempt fails in another way: they are one change. */
  #tell(serving: boolean, detail: string): void {
    if (this.#serving === serving) return;
    this.#serving = serving;
    this.#options.logger[serving ? 'info' : 'warn'](serving ? 'logs are served' : 'logs cannot be served', { detail });
  }
}
