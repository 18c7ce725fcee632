/**
 * A running installation as its users see it: the home that SUREFOOT_HOME names, its API, its engine. For tests on the
 * private stack of `npm test`; nothing here reaches past what an operator of the machine can do.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { waitUntil } from './wait-until.ts';

export interface OperationView {
  readonly id: string;
  readonly kind: string;
  readonly environmentId: string | null;
  readonly state: string;
  readonly stage: string;
  readonly attempt: number;
  readonly effects: readonly { readonly kind: string; readonly outcome: string }[];
  readonly reason: { readonly code: string; readonly message: string } | null;
  readonly waitingFor?: string | null;
}

export interface EnvironmentView {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly database: string;
    readonly users: Readonly<Record<'migrate' | 'app' | 'readonly', string>>;
  };
}

export interface LoginView {
  readonly tier: 'migrate' | 'app' | 'readonly';
  readonly user: string;
  readonly password: string;
  readonly uri: string;
}

interface Answer<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

const ENDED = ['succeeded', 'failed', 'cancelled', 'blocked'];

export class InstallationUnderTest {
  readonly home: string;
  readonly #env: ReadonlyMap<string, string>;

  constructor(home: string = requiredHome()) {
    this.home = home;
    this.#env = new Map(
      readFileSync(join(home, 'local.env'), 'utf8')
        .split('\n')
        .filter((line) => line.includes('=') && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  }

  /** A value of local.env. */
  setting(name: string): string {
    const value = this.#env.get(name);
    if (value === undefined) throw new Error(`local.env of ${this.home} has no ${name}`);
    return value;
  }

  async request<T = unknown>(
    method: string,
    path: string,
    {
      body,
      key = this.setting('SUREFOOT_API_KEY'),
      headers = {},
    }: { body?: unknown; key?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`${this.setting('SUREFOOT_URL')}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as T,
    };
  }

  /** POST of a create; the accepted operation. @throws with the answer when it is not 202 */
  async create(name: string, more: Record<string, unknown> = {}, project = 'default'): Promise<OperationView> {
    return accepted(
      await this.request<OperationView>('POST', `/v1/projects/${project}/environments`, { body: { name, ...more } }),
    );
  }

  async remove(environmentId: string): Promise<OperationView> {
    return accepted(await this.request<OperationView>('DELETE', `/v1/environments/${environmentId}`));
  }

  async environment(id: string): Promise<EnvironmentView> {
    return (await this.request<EnvironmentView>('GET', `/v1/environments/${id}`)).body;
  }

  async operation(id: string): Promise<OperationView> {
    return (await this.request<OperationView>('GET', `/v1/operations/${id}`)).body;
  }

  async logins(environmentId: string): Promise<readonly LoginView[]> {
    return (
      await this.request<{ logins: readonly LoginView[] }>('GET', `/v1/environments/${environmentId}/credentials`)
    ).body.logins;
  }

  /** Until the operation has ended, or blocks. */
  async ended(id: string, deadlineMs = 60_000): Promise<OperationView> {
    let last: OperationView | undefined;
    return waitUntil(
      `operation ${id} ends`,
      async () => {
        last = await this.operation(id).catch(() => undefined);
        return last !== undefined && ENDED.includes(last.state) && last;
      },
      { deadlineMs, intervalMs: 50 },
    ).catch((error: unknown) => {
      throw new Error(`operation did not end: ${JSON.stringify(last)}`, { cause: error });
    });
  }

  /** A create carried through to `ready`. */
  async ready(name: string, more: Record<string, unknown> = {}): Promise<EnvironmentView> {
    const operation = await this.ended((await this.create(name, more)).id);
    if (operation.state !== 'succeeded') throw new Error(`create of ${name} ended ${JSON.stringify(operation)}`);
    return this.environment(operation.environmentId ?? '');
  }

  /** Connects as a login does, optionally to another database than its own. */
  async connect(login: LoginView, database?: string): Promise<pg.Client> {
    const url = new URL(login.uri);
    // node-postgres does not decode `?` and `#` in a uri's path; libpq does.
    const undecoded = /%(?:3F|23)/.test(url.pathname) ? decodeURIComponent(url.pathname.slice(1)) : undefined;
    const other = database ?? undecoded;
    const client = new pg.Client({
      connectionTimeoutMillis: 10_000,
      ...(other === undefined ? { connectionString: login.uri } : { ...fieldsOf(url), database: other }),
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  async catalog(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.setting('SUREFOOT_CATALOG_URL') });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** The engine's administrator, through the socket on this host: the oracle that does not ask Surefoot. */
  async administrator(database = 'postgres'): Promise<pg.Client> {
    const { id, socketFolder } = await this.#engine();
    const password = readFileSync(join(this.home, 'host', 'engines', id, 'admin-password'), 'utf8').trim();
    const client = new pg.Client({ host: socketFolder, port: 5432, user: 'postgres', password, database });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  async #engine(): Promise<{ readonly id: string; readonly socketFolder: string }> {
    const catalog = await this.catalog();
    try {
      const { rows } = await catalog.query<{ id: string }>(`select id from engines where state <> 'failed'`);
      const id = rows[0]?.id ?? '';
      return { id, socketFolder: join(this.home, 'host', 'engines', id, 'socket') };
    } finally {
      await catalog.end();
    }
  }
}

/** A uri's parts one by one: what is given beside a connection string does not count. */
function fieldsOf(url: URL): pg.ClientConfig {
  return {
    host: url.hostname,
    port: Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    ssl: { ca: readFileSync(url.searchParams.get('sslrootcert') ?? '', 'utf8'), servername: url.hostname },
  };
}

function accepted(answer: Answer<OperationView>): OperationView {
  if (answer.status !== 202) throw new Error(`not accepted: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

function requiredHome(): string {
  const home = process.env['SUREFOOT_HOME'];
  if (home === undefined) throw new Error('SUREFOOT_HOME names no installation: run this by `npm test`');
  return home;
}
