import { setTimeout } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { EnvironmentView } from '#testing';
import { InstallationUnderTest } from '#testing';

const installation = new InstallationUnderTest();
const run = Date.now().toString(36);

/** What the engine still has of an environment, asked of its system catalogs. */
async function remains(environment: EnvironmentView): Promise<readonly string[]> {
  const administrator = await installation.administrator();
  const suffix = `%${environment.id.slice(0, 8)}%`;
  const { rows } = await administrator.query<{ name: string }>(
    `select datname as name from pg_database where datname like $1 or datname like 'surefoot_tombstone_%' or datname like 'surefoot_attempt_%'
     union all select rolname from pg_roles where rolname like $1`,
    [suffix],
  );
  await administrator.end();
  return rows.map(({ name }) => name);
}

async function expectRemoved(environment: EnvironmentView): Promise<void> {
  const operation = await installation.ended((await installation.remove(environment.id)).id);
  expect(operation).toMatchObject({ state: 'succeeded', reason: null });
  expect((await installation.environment(environment.id)).state).toBe('deleted');
  expect(await remains(environment)).toEqual([]);
}

test('B132: a delete ends open sessions and survives a pool that reconnects all the time', async () => {
  const environment = await installation.ready(`pool-${run}`);
  const logins = await installation.logins(environment.id);
  const open = await installation.connect(logins[1]!);
  const pool = new AbortController();
  const reconnecting = (async () => {
    for (let tries = 0; !pool.signal.aborted && tries < 2_000; tries += 1) {
      const client = await installation.connect(logins[1]!).catch(() => undefined);
      await client?.query('select 1').catch(() => undefined);
      await setTimeout(2);
    }
  })();
  await expectRemoved(environment);
  pool.abort();
  await reconnecting;
  await expect(open.query('select 1')).rejects.toThrow();
}, 60_000);

test('a login that holds a lock on a neighbour’s database keeps its delete waiting for a moment only', async () => {
  const hostile = await installation.ready(`hostile-${run}`);
  const victim = await installation.ready(`victim-${run}`);
  const login = (await installation.logins(hostile.id))[2]!;
  const holding = await installation.connect(login);
  // Any login may change its own settings in any database, and locks that database until its transaction ends.
  await holding.query('begin read write');
  await holding.query(`alter role "${login.user}" in database "${victim.connection.database}" set work_mem to '4MB'`);
  // And may grant something of its own to any role, which locks that role. That session is another one: the first is ended.
  const owner = await installation.connect((await installation.logins(hostile.id))[0]!);
  await owner.query('create table bait (n integer)');
  await owner.query('begin');
  await owner.query(`grant select on bait to "${victim.connection.users.app}"`);
  const askedAt = Date.now();
  await expectRemoved(victim);
  expect(Date.now() - askedAt).toBeLessThan(15_000);
  await Promise.all([holding, owner].map((client) => client.end().catch(() => undefined)));
  await expectRemoved(hostile);
}, 60_000);

test('B141: roles that own objects and hold rights in other databases are dropped, and the neighbour loses nothing', async () => {
  const environment = await installation.ready(`owner-${run}`);
  const neighbour = await installation.ready(`neighbour-${run}`);
  const app = environment.connection.users.app;
  const administrator = await installation.administrator(neighbour.connection.database);
  await administrator.query(
    `create table kept (n integer); insert into kept values (42); alter table kept owner to "${app}"`,
  );
  await administrator.query(`create table granted (n integer); grant select on granted to "${app}"`);
  await administrator.query(`grant connect on database "${neighbour.connection.database}" to "${app}"`);
  await expectRemoved(environment);
  expect((await administrator.query('select n from kept')).rows).toEqual([{ n: 42 }]);
  await administrator.end();
  expect((await installation.environment(neighbour.id)).state).toBe('ready');
  await expectRemoved(neighbour);
}, 60_000);

test('B021: a drop that was interrupted half-way is recognised and finished', async () => {
  const environment = await installation.ready(`half-${run}`);
  const administrator = await installation.administrator();
  // What an interrupted DROP DATABASE leaves (PostgreSQL 15.4, 16.0 and later).
  await administrator.query('update pg_database set datconnlimit = -2 where datname = $1', [
    environment.connection.database,
  ]);
  await administrator.end();
  await expectRemoved(environment);
});

test('B017: a database that was dropped by hand counts as deleted, and the drift is told', async () => {
  const environment = await installation.ready(`gone-${run}`);
  const administrator = await installation.administrator();
  await administrator.query(`drop database "${environment.connection.database}" with (force)`);
  await administrator.end();
  await expectRemoved(environment);
});

test('B019: a delete right after a create is carried out behind it, and nothing is left', async () => {
  const create = await installation.create(`quick-${run}`);
  const remove = await installation.remove(create.environmentId ?? '');
  expect(await installation.ended(remove.id)).toMatchObject({ state: 'succeeded' });
  expect(['cancelled', 'succeeded']).toContain((await installation.ended(create.id)).state);
  expect(await remains({ id: create.environmentId ?? '' } as EnvironmentView)).toEqual([]);
}, 60_000);

test('B014: a role of that name that is not ours fails the create, is left alone, and what was made is undone', async () => {
  const administrator = await installation.administrator();
  const name = `foreign-${run}`;
  const worker = await pausedWorker();
  const create = await installation.create(name);
  const { connection } = await installation.environment(create.environmentId ?? '');
  await administrator.query(`create role "${connection.users.readonly}"`);
  worker.resume();
  const ended = await installation.ended(create.id);
  expect(ended).toMatchObject({ state: 'failed', reason: { code: 'foreign_object' } });
  expect(JSON.stringify(ended)).not.toMatch(/SCRAM-SHA-256/);
  const { rows } = await administrator.query('select rolname from pg_roles where rolname like $1', [`${name}%`]);
  expect(rows).toEqual([{ rolname: connection.users.readonly }]);
  await administrator.query(`drop role "${connection.users.readonly}"`);
  await administrator.end();
  // The name is free again.
  await expectRemoved(await installation.ready(name));
}, 60_000);

/** Holds new claims back by keeping the host's row locked, as another claim would. */
async function pausedWorker(): Promise<{ resume: () => void }> {
  const catalog = await installation.catalog();
  await catalog.query('begin');
  await catalog.query('select 1 from hosts for no key update');
  return { resume: () => void catalog.query('rollback').then(() => catalog.end()) };
}
