/** Logs of services, which the worker of their host reads: this process has no way to the Docker daemon (DESIGN §10). */
import { Readable } from 'node:stream';
import type { LogFeed, LogReader } from '#broker';
import type { ShownEnvironment } from '#catalog';
import {
  LOG_ENDS,
  LOG_FOLLOW_MAX_MS,
  LOG_STREAMS_PER_KEY_MAX,
  LOG_TAIL_DEFAULT,
  type LogEnd,
  type LogLine,
  Problem,
} from '#kernel';
import type { Principal } from '../access/principal.ts';
import type { LogQuery, LogView } from '../schemas/log.ts';
import { serverEvents } from './log-events.ts';

/** A reader who takes nothing any more is left some time after the worker has ended the log. */
const STREAM_MAX_MS = LOG_FOLLOW_MAX_MS + 60_000;

export class ServiceLogs {
  readonly #brokerUrl: string;
  /** How many are open, by the key that asked. */
  readonly #openOf = new Map<string, number>();
  #reader: LogReader | undefined;

  constructor(brokerUrl: string) {
    this.#brokerUrl = brokerUrl;
  }

  /** @throws Problem */
  async read(caller: Principal, environment: ShownEnvironment, name: string, query: LogQuery): Promise<LogView> {
    const leave = this.#enter(caller);
    try {
      return await this.#read(environment, name, query);
    } finally {
      leave();
    }
  }

  async #read(environment: ShownEnvironment, name: string, query: LogQuery): Promise<LogView> {
    const items: LogLine[] = [];
    let truncated = false;
    for await (const event of await this.#open(environment, name, query, false)) {
      if (event.type === 'lines') items.push(...event.lines);
      if (event.type === 'gap') truncated = true;
      if (event.type !== 'end') continue;
      if (event.reason !== 'complete') throw notRead(event.reason);
      truncated ||= event.truncated;
    }
    return { items, truncated };
  }

  /**
   * The log as server-sent events. The stream waits for its reader, and a reader that leaves ends it.
   * @throws Problem before anything is sent
   */
  async stream(caller: Principal, environment: ShownEnvironment, name: string, query: LogQuery): Promise<Readable> {
    const leave = this.#enter(caller);
    const feed = await this.#open(environment, name, query, query.follow !== 'false').catch((error: unknown) => {
      leave();
      throw error;
    });
    const stream = Readable.from(serverEvents(feed), { objectMode: false });
    const timer = setTimeout(() => stream.destroy(), STREAM_MAX_MS);
    stream.once('close', () => {
      clearTimeout(timer);
      leave();
      feed.close();
    });
    return stream;
  }

  /** Ends every stream: the gateway stops, and clients come again. */
  async close(): Promise<void> {
    await this.#reader?.close('gateway_stopping');
  }

  /** @returns what ends it, once. @throws Problem `rate_limited` */
  #enter({ keyId }: Principal): () => void {
    const open = this.#openOf.get(keyId) ?? 0;
    if (open >= LOG_STREAMS_PER_KEY_MAX)
      throw new Problem(
        'rate_limited',
        `this API key reads ${open} logs at present, which is as many as one may: end one`,
      );
    this.#openOf.set(keyId, open + 1);
    return () => {
      const left = (this.#openOf.get(keyId) ?? 1) - 1;
      if (left === 0) this.#openOf.delete(keyId);
      else this.#openOf.set(keyId, left);
    };
  }

  async #open(environment: ShownEnvironment, name: string, query: LogQuery, follow: boolean): Promise<LogFeed> {
    const containerId = containerOf(environment, name);
    const { tail = LOG_TAIL_DEFAULT, since } = query;
    // Loaded when it is needed first: most gateways are never asked for a log.
    const { LogReader: Reader, LogsRefused } = await import('#broker');
    const reader = (this.#reader ??= new Reader({ url: this.#brokerUrl, name: 'surefoot gateway, logs' }));
    try {
      const asked = { containerId, tail, follow, ...(since === undefined ? {} : { since }) };
      return await reader.open(environment.host, asked);
    } catch (error) {
      if (!(error instanceof LogsRefused)) throw error;
      throw new Problem(error.code, error.message, { cause: error });
    }
  }
}

function containerOf({ id, state, services }: ShownEnvironment, name: string): string {
  const service = services.find((one) => one.name === name);
  if (service === undefined)
    throw new Problem('not_found', `environment ${id} has no service of that name${knownNames(services)}`);
  if (service.identities !== null) return service.identities.containerId;
  if (state === 'deleted') throw new Problem('environment_deleted', 'its services are gone with it');
  throw new Problem('environment_not_ready', `the environment is ${state}: service ${name} has no container now`);
}

function knownNames(services: readonly { readonly name: string }[]): string {
  return services.length === 0 ? '' : `; it has ${services.map(({ name }) => name).join(', ')}`;
}

/** Half an answer is none: lines that are missing would be taken for lines that were not written. */
function notRead(reason: Exclude<LogEnd, 'complete'>): Problem {
  const away = reason === 'daemon_unreachable' || reason === 'unreadable';
  return new Problem(away ? 'daemon_unreachable' : 'host_unavailable', LOG_ENDS[reason]);
}
