/** Reconcilers as programs, on a catalog and queues of the test's own, each behind a proxy. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { migrateCatalog } from '#catalog';
import { TcpProxy, waitUntil } from '#testing';
import { ownDatabase, type OwnDatabase } from '../contract/catalog-server.ts';
import { BrokerWorld } from './broker-world.ts';

const PROGRAM = resolve('dist/apps/reconciler/src/main.js');

export interface Reconciler {
  readonly process: ChildProcess;
  readonly home: string;
  /** Messages of its log. */
  readonly said: string[];
  readonly passesFile: string;
  readonly readyFile: string;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

export class ReconcilerWorld {
  readonly broker: BrokerWorld;
  /** Of its own: the broker lets nobody look into a queue with a single active consumer. */
  readonly queue: string;
  readonly database: OwnDatabase;
  readonly catalogProxy: TcpProxy;
  readonly #reconcilers: Reconciler[] = [];

  private constructor(broker: BrokerWorld, database: OwnDatabase, catalogProxy: TcpProxy) {
    this.broker = broker;
    this.queue = `${broker.topology.queue}.relayed`;
    this.database = database;
    this.catalogProxy = catalogProxy;
  }

  static async make(): Promise<ReconcilerWorld> {
    const database = await ownDatabase();
    await migrateCatalog(database.url);
    const world = new ReconcilerWorld(await BrokerWorld.make(), database, await TcpProxy.inFrontOf(database.url));
    await world.broker.declareQueue(world.queue, { 'x-queue-type': 'quorum' });
    return world;
  }

  async start(): Promise<Reconciler> {
    const home = mkdtempSync(join(tmpdir(), 'reconciler-'));
    mkdirSync(join(home, 'run'), { mode: 0o700 });
    const { installation, url, dockerHost, engineImage } = this.broker.settings;
    const values = {
      SUREFOOT_URL: url,
      SUREFOOT_INSTALLATION: installation,
      SUREFOOT_CATALOG_URL: this.catalogProxy.through(this.database.url),
      SUREFOOT_BROKER_URL: this.broker.url,
      DOCKER_HOST: dockerHost,
      SUREFOOT_ENGINE_IMAGE: engineImage,
      SUREFOOT_ENGINE_PORT: '1',
    };
    const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`);
    writeFileSync(join(home, 'local.env'), lines.join('\n'), { mode: 0o600 });
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env['PATH'], SUREFOOT_HOME: home },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said: string[] = [];
    createInterface(child.stdout).on('line', (line) => {
      said.push((JSON.parse(line) as { message: string }).message);
    });
    const reconciler: Reconciler = {
      process: child,
      home,
      said,
      passesFile: join(home, 'run', 'reconciler.passes'),
      readyFile: join(home, 'run', 'reconciler.ready'),
      async end(signal) {
        if (child.exitCode === null && child.signalCode === null) {
          child.kill(signal);
          await once(child, 'exit');
        }
        return child.exitCode;
      },
    };
    this.#reconcilers.push(reconciler);
    await waitUntil('the reconciler is ready', () => existsSync(reconciler.readyFile));
    return reconciler;
  }

  /** A connection of its own, for transactions that stay open. */
  async client(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.database.url });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** One statement that adds a message to the outbox, for whatever transaction. */
  insert(message: string, queue = this.queue): string {
    return `insert into outbox (exchange, routing_key, message) values ('', '${queue}', '{"id": "${message}"}')`;
  }

  /** Takes messages off the queue until all of these have come. @returns every one that came, duplicates too */
  async received(expected: readonly string[]): Promise<readonly string[]> {
    const missing = new Set(expected);
    const all: string[] = [];
    while (missing.size > 0) {
      const { id } = JSON.parse(await this.broker.take(this.queue)) as { id: string };
      all.push(id);
      missing.delete(id);
    }
    return all;
  }

  /** Outbox rows that are not marked. */
  async open(): Promise<number> {
    const [row] = await this.database.query<{ open: number }>(
      'select count(*)::int as open from outbox where published_at is null',
    );
    return row!.open;
  }

  async close(): Promise<void> {
    await Promise.all(this.#reconcilers.map((reconciler) => reconciler.end('SIGKILL')));
    for (const { home } of this.#reconcilers) rmSync(home, { recursive: true });
    await this.broker.deleteQueue(this.queue);
    await this.broker.close();
    await this.catalogProxy.close();
    await this.database.drop();
  }
}

export function passesOf(reconciler: Reconciler): readonly { pass: string; endedAt: string; outcome: string }[] {
  const text = readFileSync(reconciler.passesFile, 'utf8');
  return (JSON.parse(text) as { passes: readonly { pass: string; endedAt: string; outcome: string }[] }).passes;
}
