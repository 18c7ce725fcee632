/**
 * The gateway's side of logs: a request out, its answers in.
 *
 * - The queue for answers belongs to this connection and is bounded: a reader who is slow, or gone, fills nothing. What a
 *   full queue drops is its oldest, and the numbers in the answers tell how much that was.
 * - An answer is taken from the queue when the reader has used the one before; a queue that is closed returns the next
 *   answer to the worker, which ends its work.
 */
import { randomUUID } from 'node:crypto';
import { LOG_ENDS, type LogEnd, type LogLine, type LogQuery } from '#kernel';
import type { ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import { closeChannel, closeConnection, openConnection, within } from './connection.ts';
import { BrokerUnavailable } from './errors.ts';
import {
  type LogAnswer,
  logAnswerQueue,
  logMessage,
  type LogRefusalCode,
  type LogRequest,
  logRequestQueue,
  parseLogAnswer,
} from './log-messages.ts';

export class LogsRefused extends Error {
  readonly code: LogRefusalCode;

  constructor(code: LogRefusalCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.name = 'LogsRefused';
    this.code = code;
  }
}

export type LogEvent =
  | { readonly type: 'lines'; readonly lines: readonly LogLine[] }
  /** So many lines are missing here: the reader was too slow. */
  | { readonly type: 'gap'; readonly missing: number }
  /** Nothing new, and all is well. */
  | { readonly type: 'alive' }
  /** The last one. */
  | { readonly type: 'end'; readonly reason: LogEnd; readonly truncated: boolean };

export interface LogFeed extends AsyncIterable<LogEvent> {
  /** At any time, also while an event is waited for. */
  close(reason?: LogEnd): void;
}

export interface LogReaderOptions {
  readonly url: string;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  /** How long the worker may be silent. Told by tests. */
  readonly silenceMs?: number;
}

const ANSWER_TIMEOUT_MS = 5_000;
/** The worker gives a sign of life every five seconds. */
const SILENCE_MS = 15_000;
/** Answers that the broker holds for a slow reader; each is 64 KiB, or one line. Before them, those that are under way. */
const QUEUE_MAX_ANSWERS = 64;
const QUEUE_MAX_BYTES = 8 * 1024 * 1024;
const PREFETCH = 4;

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #feeds = new Set<Feed>();
  readonly #leaving = new Set<Promise<void>>();
  #connection: Promise<ChannelModel> | undefined;

  constructor(options: LogReaderOptions) {
    this.#options = options;
  }

  /**
   * Returns once the worker reads the log.
   * @throws LogsRefused
   */
  async open(hostId: string, query: LogQuery & { readonly containerId: string }): Promise<LogFeed> {
    const feed = await this.#ask(hostId, { id: randomUUID(), ...query });
    this.#feeds.add(feed);
    try {
      await feed.begin();
      return feed;
    } catch (error) {
      feed.close();
      throw error;
    }
  }

  /** Ends every feed with that reason. */
  async close(reason: LogEnd): Promise<void> {
    for (const feed of this.#feeds) feed.close(reason);
    await Promise.all(this.#leaving);
    const connection = await this.#connection?.catch(() => undefined);
    if (connection !== undefined) await closeConnection(connection);
  }

  async #ask(hostId: string, request: LogRequest): Promise<Feed> {
    let channel: ConfirmChannel | undefined;
    try {
      const connection = await (this.#connection ??= this.#connect());
      channel = await within(ANSWER_TIMEOUT_MS, 'opening a channel', connection.createConfirmChannel());
      const feed: Feed = new Feed(channel, this.#options.silenceMs ?? SILENCE_MS, () => {
        this.#feeds.delete(feed);
        this.#leave(feed.channel);
      });
      await within(ANSWER_TIMEOUT_MS, 'asking for a log', subscribe(channel, request.id, feed));
      const taken = await within(ANSWER_TIMEOUT_MS, 'asking for a log', send(channel, hostId, request));
      if (!taken) throw new LogsRefused('host_unavailable', `the worker of host ${hostId} does not run`);
      return feed;
    } catch (error) {
      if (channel !== undefined) this.#leave(channel);
      if (error instanceof LogsRefused) throw error;
      throw new LogsRefused('host_unavailable', 'the broker does not answer now', { cause: error });
    }
  }

  /** Its queue goes with it. */
  #leave(channel: ConfirmChannel): void {
    const leaving = closeChannel(channel).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #connect(): Promise<ChannelModel> {
    const { url, name } = this.#options;
    const forget = (): void => void (this.#connection = undefined);
    const opening = openConnection(url, name);
    opening.then((connection) => connection.once('close', forget), forget);
    return opening;
  }
}

async function subscribe(channel: ConfirmChannel, requestId: string, feed: Feed): Promise<void> {
  const { queue } = await channel.assertQueue(logAnswerQueue(requestId), {
    exclusive: true,
    durable: false,
    autoDelete: true,
    maxLength: QUEUE_MAX_ANSWERS,
    arguments: { 'x-overflow': 'drop-head', 'x-max-length-bytes': QUEUE_MAX_BYTES },
  });
  await channel.prefetch(PREFETCH);
  await channel.consume(queue, (message) => {
    if (message === null) feed.end('broker_unavailable');
    else feed.add(message);
  });
}

/** @returns whether a worker was there to take it */
function send(channel: ConfirmChannel, hostId: string, request: LogRequest): Promise<boolean> {
  const content = Buffer.from(JSON.stringify(logMessage(request)));
  let returned = false;
  // The broker returns a message before it confirms it.
  channel.once('return', () => (returned = true));
  return new Promise((resolve, reject) => {
    channel.publish('', logRequestQueue(hostId), content, { mandatory: true, persistent: false }, (error: unknown) => {
      if (error === null) resolve(!returned);
      else reject(error instanceof Error ? error : new BrokerUnavailable('the request was not confirmed'));
    });
  });
}

class Feed implements LogFeed {
  readonly channel: ConfirmChannel;
  readonly #silenceMs: number;
  readonly #onClose: () => void;
  readonly #arrived: ConsumeMessage[] = [];
  #ended: LogEnd | undefined;
  #wake: () => void = () => undefined;
  #closed = false;
  /** Told, and perhaps not used yet. */
  #inUse: ConsumeMessage | undefined;
  #first: LogAnswer | undefined;
  #lines = 0;

  constructor(channel: ConfirmChannel, silenceMs: number, onClose: () => void) {
    this.channel = channel;
    this.#silenceMs = silenceMs;
    this.#onClose = onClose;
    channel.on('error', () => undefined);
    channel.once('close', () => this.end('broker_unavailable'));
  }

  add(message: ConsumeMessage): void {
    this.#arrived.push(message);
    this.#wake();
  }

  /** After what has arrived. */
  end(reason: LogEnd): void {
    this.#ended ??= reason;
    this.#wake();
  }

  close(reason: LogEnd = 'complete'): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#arrived.splice(0);
    this.end(reason);
    this.#onClose();
  }

  /** Waits for the first answer, and leaves it to be told. @throws LogsRefused */
  async begin(): Promise<void> {
    const first = await this.#next();
    if ('refusal' in first) throw new LogsRefused(first.refusal.code, first.refusal.message);
    if ('end' in first && first.end !== 'complete') throw new LogsRefused('host_unavailable', LOG_ENDS[first.end]);
    this.#first = first;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LogEvent> {
    try {
      for (let answer = this.#first ?? (await this.#next()); ; answer = await this.#next()) {
        // Sent once more by a worker that could not know whether it had come.
        if ('lines' in answer && answer.lines.length > 0 && answer.seq < this.#lines) continue;
        if (answer.seq > this.#lines) yield { type: 'gap', missing: answer.seq - this.#lines };
        this.#lines = answer.seq;
        if (!('lines' in answer)) {
          yield toEnd(answer);
          return;
        }
        this.#lines += answer.lines.length;
        yield answer.lines.length === 0 ? { type: 'alive' } : { type: 'lines', lines: answer.lines };
      }
    } finally {
      this.close();
    }
  }

  async #next(): Promise<LogAnswer> {
    this.#release();
    if (this.#arrived.length === 0 && this.#ended === undefined) await this.#arrival();
    const message = this.#arrived.shift();
    if (message === undefined) return this.#endHere(this.#ended ?? 'host_unavailable');
    this.#inUse = message;
    // An answer that cannot be read is one of a worker of another version.
    return parseLogAnswer(message.content) ?? this.#endHere('host_unavailable');
  }

  #endHere(reason: LogEnd): LogAnswer {
    return { seq: this.#lines, end: reason, truncated: false };
  }

  /** Or silence. */
  async #arrival(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#silenceMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Makes room for another. */
  #release(): void {
    const used = this.#inUse;
    this.#inUse = undefined;
    try {
      if (used !== undefined && !this.#closed) this.channel.ack(used);
    } catch {
      // The channel is gone, and its end is told next.
    }
  }
}

function toEnd(answer: Exclude<LogAnswer, { readonly lines: unknown }>): LogEvent {
  return 'end' in answer
    ? { type: 'end', reason: answer.end, truncated: answer.truncated }
    : { type: 'end', reason: 'host_unavailable', truncated: false };
}
