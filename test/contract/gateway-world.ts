/** A gateway process of our own on a database of our own, so that a test decides what is in it and what goes wrong. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { migrateCatalog } from '#catalog';
import { waitUntil } from '#testing';
import { type OwnDatabase, ownDatabase, settings } from './catalog-server.ts';

const PROGRAM = resolve('dist/apps/gateway/src/main.js');

/** What the answers of all routes hold, each some of it; a test compares what it expects there. */
export interface AnswerBody {
  readonly id: string;
  readonly environmentId: string;
  readonly name: string;
  readonly kind: string;
  readonly state: string;
  readonly waitingFor: string;
  readonly caseId: string;
  readonly connection: { readonly database: string; readonly users: Readonly<Record<string, string>> };
  readonly items: readonly AnswerBody[];
  readonly nextCursor: string | null;
  readonly logins: readonly {
    readonly tier: string;
    readonly user: string;
    readonly password: string;
    readonly uri: string;
  }[];
  readonly code: string;
  readonly errors: readonly { readonly field: string; readonly code: string; readonly message: string }[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnswerBody;
  /** As it came. */
  readonly text: string;
}

export interface Asked {
  readonly body?: unknown;
  /** As bytes or text, in place of `body`. */
  readonly raw?: string | Buffer;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export const HOST = 'local';
export const ENGINE = randomUUID();
const ADMIN_KEY = 'sfk_admin';

/** Migrated, with one host, one ready engine, the project `default` and an admin's key. */
export async function seededDatabase(): Promise<OwnDatabase> {
  const database = await ownDatabase();
  await migrateCatalog(database.url);
  await database.query('insert into hosts (id, identity) values ($1, $2)', [HOST, randomUUID()]);
  await database.query(
    `insert into engines (id, name, host_id, state, image, port, network_pool, identity, extensions)
     values ($1, 'main', $2, 'ready', 'postgres:17', 15432, '10.1.0.0/16', $3, '{pgcrypto,uuid-ossp}')`,
    [ENGINE, HOST, randomUUID()],
  );
  await database.query(`insert into projects (id, name) values ($1, 'default')`, [randomUUID()]);
  await addKey(database, 'admin', 'admin', null, ADMIN_KEY);
  return database;
}

/** @returns the key itself */
export async function addKey(
  database: OwnDatabase,
  name: string,
  role: string,
  projects: readonly string[] | null = null,
  key = `sfk_${randomBytes(12).toString('hex')}`,
): Promise<string> {
  const hash = createHash('sha256').update(key).digest();
  await database.query('insert into api_keys (id, name, key_hash, role, project_ids) values ($1, $2, $3, $4, $5)', [
    randomUUID(),
    name,
    hash,
    role,
    projects,
  ]);
  return key;
}

export class GatewayUnderTest {
  readonly url: string;
  readonly home: string;
  readonly #process: ChildProcess;
  #output = '';

  private constructor(url: string, home: string, child: ChildProcess) {
    this.url = url;
    this.home = home;
    this.#process = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
  }

  /** Returns once it answers, which it does with the catalog down too. */
  static async start(catalogUrl: string): Promise<GatewayUnderTest> {
    const home = mkdtempSync(join(tmpdir(), 'gateway-'));
    mkdirSync(join(home, 'host'), { mode: 0o700 });
    const url = `http://127.0.0.1:${await freePort()}`;
    const values = {
      SUREFOOT_URL: url,
      SUREFOOT_INSTALLATION: settings.installation,
      SUREFOOT_HOST: HOST,
      SUREFOOT_CATALOG_URL: catalogUrl,
      SUREFOOT_BROKER_URL: settings.brokerUrl,
      DOCKER_HOST: settings.dockerHost,
      SUREFOOT_ENGINE_IMAGE: 'postgres:17',
      SUREFOOT_ENGINE_PORT: '15432',
    };
    const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`);
    writeFileSync(join(home, 'local.env'), lines.join('\n'), { mode: 0o600 });
    writeFileSync(join(home, 'host', 'key'), randomBytes(32).toString('base64'), { mode: 0o600 });
    const child = spawn(process.execPath, [PROGRAM], {
      env: { SUREFOOT_HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const gateway = new GatewayUnderTest(url, home, child);
    await waitUntil('the gateway answers', async () => {
      if (child.exitCode !== null) throw new Error(`the gateway ended: ${gateway.#output}`);
      return (await fetch(`${url}/health/live`).catch(() => undefined))?.ok;
    });
    return gateway;
  }

  async ready(): Promise<this> {
    await waitUntil('the gateway is ready', async () => (await this.request('GET', '/health/ready')).status === 200);
    return this;
  }

  async request(method: string, path: string, asked: Asked = {}): Promise<Answer> {
    const key = 'key' in asked ? asked.key : ADMIN_KEY;
    const body = asked.raw ?? (asked.body === undefined ? undefined : JSON.stringify(asked.body));
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    const parsed = (isJson ? JSON.parse(text) : {}) as AnswerBody;
    return { status: response.status, headers: response.headers, body: parsed, text };
  }

  get(path: string, asked?: Asked): Promise<Answer> {
    return this.request('GET', path, asked);
  }

  create(name: string, asked: Asked = {}): Promise<Answer> {
    return this.request('POST', '/v1/projects/default/environments', { body: { name }, ...asked });
  }

  /** What it wrote so far, to standard output and standard error. */
  get output(): string {
    return this.#output;
  }

  get ended(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** @returns how it ended */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    if (!this.ended) {
      const ended = once(this.#process, 'close');
      this.#process.kill(signal);
      await ended;
    }
    rmSync(this.home, { recursive: true, force: true });
    return this.#process.exitCode ?? this.#process.signalCode ?? 'unknown';
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
