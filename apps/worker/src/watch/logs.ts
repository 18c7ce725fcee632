/**
 * Logs of this host's services, for gateways that ask (DESIGN §10): beside the jobs, on connections of its own, and without
 * changing anything. Lines are passed on, and neither logged nor stored.
 */
import type { LogAnswer, LogRequest } from '#broker';
import { LogServer } from '#broker';
import { Daemon } from '#docker';
import type { LogEnd, Logger } from '#kernel';
import { LOG_FOLLOW_MAX_MS, LOG_STREAMS_MAX } from '#kernel';
import type { Settings } from '#settings';
import type { LogSource } from './log-stream.ts';
import { inTime, streamLog } from './log-stream.ts';
import { Turns } from './turns.ts';

export interface LogWatchParts {
  readonly settings: Pick<Settings, 'brokerUrl' | 'dockerHost' | 'hostId' | 'installation'>;
  readonly log: Logger;
}

/** Two calls come before the first word to a reader, who waits 15 seconds for it. */
const CALL_DEADLINE_MS = 7_000;
/** For a log that is not followed, as a whole. */
const READ_DEADLINE_MS = 10_000;

/** For telling all readers the end. */
const GOODBYE_MS = 1_000;

type Answer = (answer: LogAnswer) => Promise<boolean>;

export class LogWatch {
  readonly #hostId: string;
  readonly #log: Logger;
  readonly #source: LogSource;
  readonly #server: LogServer;
  readonly #streams = new Map<AbortController, Promise<void>>();
  readonly #turns = new Turns();

  constructor({ settings, log }: LogWatchParts) {
    const { brokerUrl, dockerHost, hostId, installation } = settings;
    this.#hostId = hostId;
    this.#log = log;
    this.#source = { daemon: new Daemon(dockerHost, CALL_DEADLINE_MS), installation };
    this.#server = new LogServer({
      url: brokerUrl,
      hostId,
      logger: log,
      onRequest: (request, answer) => this.#accept(request, answer),
    });
  }

  /** Returns at once; a broker that is away is waited for. */
  start(): void {
    this.#server.start();
  }

  /** Readers are told, unless the broker is away: a worker that stops does not wait for it. */
  async close(): Promise<void> {
    const streams = [...this.#streams];
    for (const [ending] of streams) ending.abort('host_unavailable' satisfies LogEnd);
    await inTime(Promise.allSettled(streams.map(([, stream]) => stream)), GOODBYE_MS);
    await this.#server.close();
  }

  #accept(request: LogRequest, answer: Answer): void {
    if (this.#streams.size >= LOG_STREAMS_MAX) {
      const message = `host ${this.#hostId} reads ${LOG_STREAMS_MAX} logs at present, which is as many as it does`;
      this.#tell(answer({ seq: 0, refusal: { code: 'rate_limited', message } }));
      return;
    }
    const ending = new AbortController();
    const stream = this.#stream(request, answer, ending).finally(() => this.#streams.delete(ending));
    this.#streams.set(ending, stream);
    this.#tell(stream);
  }

  async #stream(request: LogRequest, answer: Answer, ending: AbortController): Promise<void> {
    const [limitMs, reason]: readonly [number, LogEnd] = request.follow
      ? [LOG_FOLLOW_MAX_MS, 'time_limit']
      : [READ_DEADLINE_MS, 'daemon_unreachable'];
    const timer = setTimeout(() => ending.abort(reason), limitMs);
    const send = (message: LogAnswer, bytes: number): Promise<boolean> =>
      this.#turns.take(bytes, () => answer(message));
    try {
      await streamLog(this.#source, request, send, ending.signal);
    } finally {
      clearTimeout(timer);
      // Closes the log, if nothing else has.
      ending.abort('complete' satisfies LogEnd);
    }
  }

  #tell(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#log.error('log could not be passed on', { error }));
  }
}
