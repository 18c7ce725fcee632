import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import pg from 'pg';
import {
  acceptEnvironmentDelete,
  assertCatalogVersion,
  Catalog,
  CatalogUnavailable,
  CatalogVersionMismatch,
  environmentsById,
  migrateCatalog,
  MIGRATIONS,
} from '#catalog';
import { waitUntil } from '#testing';
import { ownDatabase, type OwnDatabase } from './catalog-server.ts';

const MIGRATION_LOCK = 7_270_617;

let database: OwnDatabase;
beforeEach(async () => {
  database = await ownDatabase();
});
afterEach(async () => database.drop());

function openCatalog(): Catalog {
  return Catalog.open({ url: database.url, applicationName: 'surefoot test', maxConnections: 1 });
}

async function versionFault(): Promise<unknown> {
  const catalog = openCatalog();
  try {
    await assertCatalogVersion(catalog);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await catalog.close();
  }
}

test('migrating twice is harmless, and what was migrated fits', async () => {
  expect(await migrateCatalog(database.url)).toHaveLength(MIGRATIONS.length);
  expect(await migrateCatalog(database.url)).toEqual([]);
  expect(await versionFault()).toBeUndefined();
});

test('B151: of several that start together one migrates, and the others find nothing to do', async () => {
  const runs = await Promise.all(Array.from({ length: 6 }, () => migrateCatalog(database.url)));
  expect(runs.map((names) => names.length).sort()).toEqual([0, 0, 0, 0, 0, MIGRATIONS.length]);
});

test('B139: what an older version has made is shown after the migration, and its environment can be deleted', async () => {
  await migrateCatalog(database.url, MIGRATIONS.slice(0, 1));
  const [engineId, projectId, keyId, environmentId, operationId] = Array.from({ length: 5 }, () => randomUUID());
  const statements: readonly [string, ...unknown[]][] = [
    [`insert into hosts (id, identity) values ('local', $1)`, randomUUID()],
    [
      `insert into engines (id, name, host_id, state, image, port, network_pool, identity)
       values ($1, 'main', 'local', 'ready', 'postgres:17', 15432, '10.1.0.0/16', $2)`,
      engineId,
      randomUUID(),
    ],
    [`insert into projects (id, name) values ($1, 'default')`, projectId],
    [`insert into api_keys (id, name, key_hash, role) values ($1, 'admin', '\\x00', 'admin')`, keyId],
    [
      `insert into environments (id, project_id, name, state, engine_id, profile, extensions, connection_limit, labels, database_name)
       values ($1, $2, 'old', 'ready', $3, 'local', '{}', 20, '{}', 'old_1')`,
      environmentId,
      projectId,
      engineId,
    ],
    [
      `insert into operations (id, kind, host_id, project_id, environment_id, engine_id, state)
       values ($1, 'environment.create', 'local', $2, $3, $4, 'succeeded')`,
      operationId,
      projectId,
      environmentId,
      engineId,
    ],
  ];
  for (const [text, ...values] of statements) await database.query(text, values);
  expect(await migrateCatalog(database.url)).toHaveLength(MIGRATIONS.length - 1);
  const catalog = openCatalog();
  try {
    expect(await environmentsById(catalog, [environmentId!])).toEqual([
      expect.objectContaining({ name: 'old', state: 'ready', services: [], reason: null }),
    ]);
    const ids = { operationId: randomUUID(), jobId: randomUUID(), environmentId: environmentId! };
    const requestedBy = { keyId: keyId!, name: 'admin' };
    const { answer } = await catalog.transaction((tx) => acceptEnvironmentDelete(tx, { ...ids, requestedBy }));
    expect(answer).toBe('accepted');
  } finally {
    await catalog.close();
  }
});

/** A process that has begun a migration and sleeps in it. The address comes by standard input. */
const SLOW_MIGRATION = `
  import { text } from 'node:stream/consumers';
  import { migrateCatalog } from '#catalog';
  class Slow1764000000002 {
    name = 'Slow1764000000002';
    async up(runner) {
      await runner.query('create table half_done (n integer)');
      await runner.query('select pg_sleep(600)');
    }
  }
  await migrateCatalog(await text(process.stdin), [Slow1764000000002]);`;

test('B151: a holder that is killed in the middle of a migration frees the lock, and leaves nothing half done', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', SLOW_MIGRATION], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.end(database.url);
  await waitUntil('the first is in its migration', async () => {
    const sleeping = await database.query(`select 1 from pg_stat_activity where query = 'select pg_sleep(600)'`);
    return sleeping.length > 0;
  });
  const waiters = Promise.all([migrateCatalog(database.url), migrateCatalog(database.url)]);
  await waitUntil('two wait for the lock', async () => {
    const waiting = await database.query(
      `select 1 from pg_locks where locktype = 'advisory' and objid = $1 and not granted`,
      [MIGRATION_LOCK],
    );
    return waiting.length === 2;
  });
  child.kill('SIGKILL');
  expect((await waiters).map((names) => names.length).sort()).toEqual([0, MIGRATIONS.length]);
  expect(await database.query(`select 1 from pg_tables where tablename = 'half_done'`)).toEqual([]);
});

test('a schema that a newer program made is refused, by the migration and by every program, and left alone', async () => {
  await migrateCatalog(database.url);
  await database.query(`insert into migrations (timestamp, name) values (1900000000000, 'Future1900000000000')`);
  for (const error of [await migrateCatalog(database.url).catch((thrown: unknown) => thrown), await versionFault()]) {
    expect(error).toBeInstanceOf(CatalogVersionMismatch);
    expect(error).toMatchObject({ code: 'catalog_newer', message: expect.stringContaining('Future1900000000000') });
  }
});

test('a catalog that was not migrated is refused with what to do', async () => {
  expect(await versionFault()).toMatchObject({
    code: 'catalog_outdated',
    message: expect.stringContaining('npm start'),
  });
});

test('a failed migration leaves the lock free', async () => {
  class Wrong1764000000002 implements MigrationInterface {
    readonly name = 'Wrong1764000000002';
    async up(runner: QueryRunner): Promise<void> {
      await runner.query('select no_such_column');
    }
    down(): Promise<void> {
      return Promise.resolve();
    }
  }
  await expect(migrateCatalog(database.url, [Wrong1764000000002])).rejects.toThrow('no_such_column');
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ free: boolean }>('select pg_try_advisory_lock($1) as free', [MIGRATION_LOCK]);
  await client.end();
  expect(rows).toEqual([{ free: true }]);
});

test('a catalog that is not there is said to be unavailable', async () => {
  await expect(migrateCatalog('postgres://surefoot@127.0.0.1:1/surefoot')).rejects.toThrow(CatalogUnavailable);
});
