/**
 * Surefoot's side: a request as any client makes it, and the moment its operation has ended.
 *
 * That moment is the commit that ends the operation, told by the catalog itself: neither an interval between polls nor the
 * load of polling is part of a sample. In an installation that is not ours to change it is polled for instead.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Catalog } from '#catalog';
import { connectionSettings } from '#catalog';
import pg from 'pg';
import type { Installation } from './installation.ts';
import type { RecordTimes } from './record-times.ts';

export interface EffectTimes {
  readonly kind: string;
  /** Milliseconds since the epoch, with fractions. */
  readonly startedAt: number;
  readonly settledAt: number;
  readonly receiptAt: number | undefined;
  readonly witnessAt: number | undefined;
}

/** One operation from the outside; milliseconds since the epoch, with fractions. */
export interface Sample {
  readonly operationId: string;
  readonly environmentId: string;
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly endedAt: number;
  /** When the catalog's transactions began that accepted, claimed and finished it. */
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly effects: readonly EffectTimes[];
}

/** One that does nothing, of an image that every host has. */
export interface SmallService {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly limits: { readonly memory: string };
}

interface Operation {
  readonly id: string;
  readonly environmentId: string;
  readonly state: string;
  readonly reason?: unknown;
}

interface Credentials {
  readonly logins: readonly {
    readonly tier: string;
    readonly user: string;
    readonly password: string;
    readonly uri: string;
  }[];
}

const CREATE = '/v1/projects/default/environments';
const CHANNEL = 'surefoot_bench';
const ENDED = ['succeeded', 'failed', 'cancelled', 'blocked'];
const POLL_MS = 2;
const DEADLINE_MS = 60_000;

const TELL_ENDS = /* sql */ `
  create or replace function surefoot_bench_tell() returns trigger language plpgsql as $$
  begin
    perform pg_notify('${CHANNEL}', new.id::text);
    return null;
  end $$;
  create or replace trigger surefoot_bench_tell after update of state on operations for each row
    when (new.state in ('succeeded', 'failed', 'cancelled', 'blocked')) execute function surefoot_bench_tell();`;

export class Product {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #catalog: Catalog;
  readonly #listener: pg.Client | undefined;
  readonly #records: RecordTimes;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #ends = new Map<string, number>();
  #onEnd: () => void = () => undefined;

  private constructor(installation: Installation, listener: pg.Client | undefined, records: RecordTimes) {
    this.#url = installation.settings.url;
    this.#apiKey = installation.apiKey;
    this.#catalog = installation.catalog;
    this.#records = records;
    this.#listener = listener;
    // An interrupted run takes the catalog down while this listens: what waits for an end gives up by itself.
    listener?.on('error', () => undefined);
    listener?.on('notification', ({ payload }) => {
      this.#ends.set(payload ?? '', now());
      this.#onEnd();
    });
  }

  static async open(installation: Installation, records: RecordTimes): Promise<Product> {
    if (!installation.isPrivate) return new Product(installation, undefined, records);
    const { settings } = installation;
    const listener = new pg.Client(
      connectionSettings({ url: settings.catalogUrl, applicationName: 'surefoot bench', maxConnections: 1 }),
    );
    await listener.connect();
    await listener.query(TELL_ENDS);
    await listener.query(`listen ${CHANNEL}`);
    return new Product(installation, listener, records);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    await this.#listener?.end();
  }

  create(name: string, services?: readonly SmallService[]): Promise<Sample> {
    return this.#measure('POST', CREATE, { name, ...(services === undefined ? {} : { services }) });
  }

  /** A create that is to be refused: the code of the refusal. */
  async refusal(name: string, services: readonly SmallService[]): Promise<string | undefined> {
    const { status, text } = await this.#ask('POST', CREATE, { name, services });
    return status === 202 ? undefined : (JSON.parse(text) as { code?: string }).code;
  }

  delete(environmentId: string): Promise<Sample> {
    return this.#measure('DELETE', `/v1/environments/${environmentId}`);
  }

  /** Its application's login, as the API hands it out. */
  async appLogin(environmentId: string): Promise<{ user: string; password: string; database: string }> {
    const { logins } = await this.#call<Credentials>('GET', `/v1/environments/${environmentId}/credentials`);
    const login = logins.find(({ tier }) => tier === 'app');
    if (login === undefined) throw new Error(`environment ${environmentId} has no login for its application`);
    const database = decodeURIComponent(new URL(login.uri).pathname.slice(1));
    return { user: login.user, password: login.password, database };
  }

  async #measure(method: 'POST' | 'DELETE', path: string, body?: object): Promise<Sample> {
    const sentAt = now();
    const operation = await this.#call<Operation>(method, path, body);
    const answeredAt = now();
    const endedAt = await this.#endOf(operation.id);
    const ended = await this.#call<Operation>('GET', `/v1/operations/${operation.id}`);
    if (ended.state !== 'succeeded')
      throw new Error(`${method} ${path} ended as ${ended.state}: ${JSON.stringify(ended.reason)}`);
    const { id, environmentId } = operation;
    return { operationId: id, environmentId, sentAt, answeredAt, endedAt, ...(await this.#inside(id)) };
  }

  async #call<Answer>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Answer> {
    const { status, text } = await this.#ask(method, path, body);
    if (status !== 200 && status !== 202) throw new Error(`${method} ${path} was answered ${status}: ${text}`);
    return JSON.parse(text) as Answer;
  }

  async #ask(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(`${this.#url}${path}`, {
      method,
      agent: this.#agent,
      headers: {
        authorization: `Bearer ${this.#apiKey}`,
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    });
    sent.end(text);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const answer = Buffer.concat((await response.toArray()) as Buffer[]).toString();
    return { status: response.statusCode ?? 0, text: answer };
  }

  async #endOf(operationId: string): Promise<number> {
    const giveUpAt = now() + DEADLINE_MS;
    while (now() < giveUpAt) {
      const told = this.#ends.get(operationId);
      if (told !== undefined) return told;
      if (this.#listener === undefined) {
        if (ENDED.includes((await this.#call<Operation>('GET', `/v1/operations/${operationId}`)).state)) return now();
        await setTimeout(POLL_MS);
      } else {
        const timeout = new AbortController();
        await Promise.race([
          new Promise<void>((resolve) => (this.#onEnd = resolve)),
          setTimeout(1_000, undefined, { signal: timeout.signal }).catch(() => undefined),
        ]);
        timeout.abort();
      }
    }
    throw new Error(`operation ${operationId} has not ended after ${DEADLINE_MS / 1000} s`);
  }

  /** What the catalog and the record files say about the operation. */
  async #inside(operationId: string): Promise<Pick<Sample, 'createdAt' | 'startedAt' | 'finishedAt' | 'effects'>> {
    const [operation] = await this.#catalog.query<{ created: number; started: number; finished: number }>(
      `select ${epoch('created_at')} as created, ${epoch('started_at')} as started, ${epoch('finished_at')} as finished
         from operations where id = $1`,
      [operationId],
    );
    if (operation === undefined) throw new Error(`the catalog has no operation ${operationId}`);
    const effects = await this.#catalog.query<{ id: string; kind: string; started: number; settled: number }>(
      `select id, kind, ${epoch('started_at')} as started, ${epoch('settled_at')} as settled
         from effects where operation_id = $1 order by ordinal`,
      [operationId],
    );
    return {
      createdAt: operation.created,
      startedAt: operation.started,
      finishedAt: operation.finished,
      effects: effects.map(({ id, kind, started, settled }) => ({
        kind,
        startedAt: started,
        settledAt: settled,
        receiptAt: this.#records.receiptAt(id),
        witnessAt: this.#records.witnessAt(id),
      })),
    };
  }
}

/** A double keeps it to well under a microsecond of what `now()` gives. */
function epoch(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::double precision`;
}

/** Comparable with the catalog's clock: it is the same machine's. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
