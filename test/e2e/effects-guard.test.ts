/** The guarded batch on a real engine: tokens, tombstones, ledger, age, and connections that break where it matters. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ActResult } from '#effects';
import { attemptDatabaseName } from '#kernel';
import type pg from 'pg';
import { abandon, classifyEngineError, connectAdmin, FreshConnections } from '#postgres';
import { waitUntil } from '#testing';
import type { Environment } from './effects-world.ts';
import { CONTROL, EffectsWorld, facts, sessionLock } from './effects-world.ts';

const LONG = 120_000;

let world: EffectsWorld;
beforeAll(async () => {
  world = await EffectsWorld.make();
}, LONG);
afterAll(() => world.remove(), LONG);
afterEach(() => world.endClients());

const made: Environment[] = [];
async function environment(name = 'guard'): Promise<Environment> {
  const env = await world.environment(name);
  made.push(env);
  return env;
}
afterEach(async () => {
  for (const env of made.splice(0)) {
    if (env.identities.roleOids === undefined) await adopt(env);
    await world.run('environment.delete', env);
    expect(await world.leftovers(env)).toEqual([]);
  }
});

/** Where an act's answer was lost, what it made is found by name, so that it can be cleared away. */
async function adopt(env: Environment): Promise<void> {
  const { owner, door, logins } = env.names;
  const rows = await world.sql<{ oid: number; name: string }>(
    'select oid, rolname::text as name from pg_roles where rolname = any ($1)',
    [[owner, door, ...Object.values(logins)]],
  );
  const oid = (name: string): number => rows.find((row) => row.name === name)?.oid ?? 0;
  if (rows.length > 0)
    env.identities = {
      ...env.identities,
      roleOids: {
        owner: oid(owner),
        door: oid(door),
        migrate: oid(logins.migrate),
        app: oid(logins.app),
        readonly: oid(logins.readonly),
      },
    };
}

const roles = (
  env: Environment,
  more: { token: string; claimNumber?: number; deadlineMs?: number },
): Promise<ActResult> => world.act(env, 'roles', world.spec(env, 'roles'), more);
const rolesThroughProxy = (env: Environment, more: { token: string; deadlineMs?: number }): Promise<ActResult> =>
  world.actThroughProxy(env, 'roles', world.spec(env, 'roles'), more);

async function revoke(token: string): Promise<void> {
  await world.sql(
    `insert into surefoot.tokens (token, effect, resource, attempt, claim_number, state) values ($1, $1, 'x', 1, 1, 'revoked')
     on conflict (token) do update set state = 'revoked'`,
    [token],
  );
}

async function expectNothingDone(env: Environment, token: string): Promise<void> {
  expect(await world.leftovers(env)).toEqual([]);
  expect(await world.ledger(token)).toBeUndefined();
}

const databases = (): Promise<object[]> => world.sql('select oid, datname from pg_database order by 1');

async function lockIsFree(env: Environment): Promise<boolean> {
  const [row] = await world.sql<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [sessionLock(env.id)]);
  return row!.got;
}

const held = (matches: RegExp): Promise<true> =>
  waitUntil(
    `the proxy holds ${String(matches)}`,
    () => world.proxy.held.some((text) => matches.test(text)) || undefined,
  );

describe('registration', () => {
  test('names the exact backend that acts, before it changes anything', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.once(/^begin/i, 'hold');
    const acting = rolesThroughProxy(env, { token });
    await held(/^begin/i);
    const [found] = await world.sql<{ state: string; same: boolean; name: string }>(
      `select t.state, a.backend_start = t.backend_start as same, a.application_name as name
         from surefoot.tokens t join pg_stat_activity a on a.pid = t.backend_pid where t.token = $1`,
      [token],
    );
    expect(found).toEqual({ state: 'active', same: true, name: 'surefoot test' });
    expect(await world.leftovers(env)).toEqual([]);
    world.proxy.release();
    expect((await acting).outcome).toBe('applied');
  });

  test('holds the environment’s session lock while the change is made, and not any longer', async () => {
    const env = await environment();
    world.proxy.once(/commit$/i, 'hold');
    const acting = rolesThroughProxy(env, { token: randomUUID() });
    await held(/commit$/i);
    expect(await lockIsFree(env)).toBe(false);
    world.proxy.release();
    expect((await acting).outcome).toBe('applied');
    await waitUntil('the lock is free', () => lockIsFree(env));
  });

  test('brings the claim’s number to the engine’s age record, which only grows', async () => {
    const age = async (): Promise<number> =>
      Number((await world.sql<{ n: string }>('select claim_number as n from surefoot.identity'))[0]!.n);
    const before = await age();
    for (const [claimNumber, expected] of [
      [before + 5, before + 5],
      [before + 3, before + 5],
      [before + 6, before + 6],
    ] as const) {
      const env = await environment();
      expect((await roles(env, { token: randomUUID(), claimNumber })).outcome).toBe('applied');
      expect(await age()).toBe(expected);
    }
  });

  test.each(['identity', 'engine', 'installation'])(
    'is refused as `age` where the control database has another %s: it is not the engine that the catalog knows',
    async (column) => {
      const env = await environment();
      const token = randomUUID();
      const [before] = await world.sql<Record<string, string>>('select * from surefoot.identity');
      await world.sql(`update surefoot.identity set ${column} = gen_random_uuid()`);
      try {
        expect(await roles(env, { token })).toMatchObject({ outcome: 'refused', reason: { code: 'age' } });
      } finally {
        await world.sql(`update surefoot.identity set ${column} = $1`, [before![column]]);
      }
      expect(await world.tokenRow(token)).toBeUndefined();
      await expectNothingDone(env, token);
    },
  );
});

describe('a revoked token (invariant 5)', () => {
  test('is refused when it was revoked before anybody registered it', async () => {
    const env = await environment();
    const token = randomUUID();
    await revoke(token);
    expect(await roles(env, { token })).toMatchObject({ outcome: 'refused', reason: { code: 'revoked' } });
    expect(await world.tokenRow(token)).toMatchObject({ state: 'revoked', backend_pid: null });
    await expectNothingDone(env, token);
  });

  test.each(['roles', 'database', 'interior'] as const)(
    'is refused when it is revoked between registration and change, of %s',
    async (kind) => {
      const env = await environment();
      if (kind === 'interior') await world.run('environment.create', env, { until: 'interior' });
      const before = await databases();
      const token = randomUUID();
      const check = /select state from surefoot\.tokens/;
      world.proxy.once(check, 'hold');
      const acting = world.actThroughProxy(env, kind, world.spec(env, kind), { token });
      await held(check);
      expect(await world.tokenRow(token)).toMatchObject({ state: 'active' });
      await revoke(token);
      world.proxy.release();
      expect(await acting).toMatchObject({ outcome: 'refused', reason: { code: 'revoked' } });
      expect(await databases()).toEqual(before);
      expect(await world.ledger(token)).toBeUndefined();
      if (kind !== 'interior') expect(await world.leftovers(env)).toEqual([]);
    },
  );

  test.each([
    ['that nobody had registered', false],
    ['that an earlier try had registered', true],
  ])(
    '%s is refused when the revoker has the session lock first and the batch waits for it',
    async (_which, registered) => {
      const env = await environment();
      const token = randomUUID();
      if (registered) {
        // An earlier try under the same token, which ended before it changed anything.
        world.proxy.once(/^begin/i, 'lose-request');
        const tries = rolesThroughProxy(env, { token, deadlineMs: 0 });
        expect(await tries).toMatchObject({ outcome: 'refused', reason: { code: 'engine_unreachable' } });
        expect(await world.tokenRow(token)).toMatchObject({ state: 'active' });
      }
      const revoker = await world.admin();
      await revoker.query('select pg_advisory_lock($1)', [sessionLock(env.id)]);
      const acting = roles(env, { token });
      await waitUntil('the batch waits for the lock', async () => {
        const rows = await world.sql(`select 1 from pg_locks where locktype = 'advisory' and not granted`);
        return rows.length === 1;
      });
      // The whole revocation happens while the batch waits: its snapshot must not be older than this.
      await revoke(token);
      await revoker.query('select pg_advisory_unlock($1)', [sessionLock(env.id)]);
      expect(await acting).toMatchObject({ outcome: 'refused', reason: { code: 'revoked' } });
      await expectNothingDone(env, token);
    },
  );

  test('makes the revoker wait where the batch has its row first; the change is then whole', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.once(/commit$/i, 'hold');
    const acting = rolesThroughProxy(env, { token });
    await held(/commit$/i);
    const revoking = revoke(token);
    await waitUntil('the revoker waits', async () => {
      const rows = await world.sql(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into surefoot.tokens%'`,
      );
      return rows.length === 1;
    });
    world.proxy.release();
    expect((await acting).outcome).toBe('applied');
    await revoking;
    expect(await world.ledger(token)).toBeDefined();
    expect(await world.leftovers(env)).toHaveLength(5);
  });

  test('makes no database, no database’s inside and no disowning either', async () => {
    const env = await environment();
    expect((await roles(env, { token: randomUUID() })).outcome).toBe('applied');
    await adopt(env);
    const unpublished = await world.run('environment.create', await environment(), { until: 'interior' });
    expect(unpublished.done).toEqual(['roles applied', 'database applied']);
    const other = made.at(-1)!;
    const token = randomUUID();
    await revoke(token);
    const refusals = [
      await world.act(env, 'database', world.spec(env, 'database'), { token }),
      await world.act(other, 'interior', world.spec(other, 'interior'), { token }),
      await world.act(other, 'drop-database', world.spec(other, 'drop-database'), { token }),
      await world.act(
        env,
        'disown',
        { environmentId: env.id, roleOids: env.identities.roleOids!, databaseOids: [] },
        { token },
      ),
    ];
    for (const result of refusals) expect(result).toMatchObject({ outcome: 'refused', reason: { code: 'revoked' } });
    expect(await world.sql('select 1 from pg_database where datname = $1', [attemptDatabaseName(token)])).toEqual([]);
    expect(await world.sql('select 1 from pg_database where oid = $1', [other.identities.databaseOid])).toHaveLength(1);
  });

  test('in the target alone is enough: a tombstone there refuses the batch inside it', async () => {
    const env = await environment();
    await world.run('environment.create', env, { until: 'interior' });
    const token = randomUUID();
    const [database] = await world.sql<{ name: string }>(
      'select datname::text as name from pg_database where oid = $1',
      [env.identities.databaseOid],
    );
    await world.sql(
      `insert into surefoot.tokens (token, effect, resource, attempt, claim_number, state) values ($1, $1, 'x', 1, 1, 'revoked')`,
      [token],
      database!.name,
    );
    const result = await world.act(env, 'interior', world.spec(env, 'interior'), { token });
    expect(result).toMatchObject({ outcome: 'refused', reason: { code: 'revoked' } });
    expect(await world.ledger(token, database!.name)).toBeUndefined();
  });
});

describe('the ledger', () => {
  test('has a row exactly for what has committed, with the facts that the act reports', async () => {
    const env = await environment();
    const tokens = { applied: randomUUID(), refused: randomUUID() };
    const applied = await roles(env, { token: tokens.applied });
    expect(await world.ledger(tokens.applied)).toEqual(facts(applied));
    const refused = await roles(env, { token: tokens.refused });
    expect(refused.outcome).toBe('refused');
    expect(await world.ledger(tokens.refused)).toBeUndefined();
  });

  test('of an effect inside a database is in that database, and commits with the change there', async () => {
    const env = await environment();
    await world.run('environment.create', env, { until: 'interior' });
    const token = randomUUID();
    expect((await world.act(env, 'interior', world.spec(env, 'interior'), { token })).outcome).toBe('applied');
    const [database] = await world.sql<{ name: string }>(
      'select datname::text as name from pg_database where oid = $1',
      [env.identities.databaseOid],
    );
    expect(await world.ledger(token, database!.name)).toEqual({});
    expect(await world.ledger(token)).toBeUndefined();
    expect(await world.tokenRow(token, database!.name)).toMatchObject({ state: 'active' });
    expect(await world.tokenRow(token)).toMatchObject({ state: 'active' });
  });

  test('refuses a second commit under one token: an effect is done once', async () => {
    const env = await environment();
    const token = randomUUID();
    expect((await roles(env, { token })).outcome).toBe('applied');
    const other = await environment();
    const again = await world.act(other, 'roles', world.spec(other, 'roles'), { token });
    expect(again.outcome).toBe('refused');
    expect(await world.leftovers(other)).toEqual([]);
  });
});

describe('connections that break', () => {
  const backendOf = async (token: string): Promise<number> => Number((await world.tokenRow(token))!['backend_pid']);

  test('a backend that is killed before its COMMIT has done nothing, and the batch is made again under the same token', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.once(/insert into surefoot\.ledger/, 'hold');
    const acting = rolesThroughProxy(env, { token });
    await held(/insert into surefoot\.ledger/);
    const first = await backendOf(token);
    await world.sql('select pg_terminate_backend($1)', [first]);
    world.proxy.lose();
    expect((await acting).outcome).toBe('applied');
    expect(await backendOf(token)).not.toBe(first);
    expect(await world.leftovers(env)).toHaveLength(5);
    const [rows] = await world.sql<{ n: string }>('select count(*) as n from surefoot.ledger where token = $1', [
      token,
    ]);
    expect(rows!.n).toBe('1');
  });

  test('a connection that is lost in the middle of the change is made again as well', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.once(/create role/, 'lose-reply');
    expect((await rolesThroughProxy(env, { token })).outcome).toBe('applied');
    expect(await world.leftovers(env)).toHaveLength(5);
  });

  test('a backend that is killed with the COMMIT on its way is unknown, is not tried again, and has done nothing', async () => {
    const env = await environment();
    const token = randomUUID();
    const before = world.proxy.connections;
    world.proxy.once(/commit$/i, 'hold');
    const acting = rolesThroughProxy(env, { token });
    await held(/commit$/i);
    await world.sql('select pg_terminate_backend($1)', [await backendOf(token)]);
    expect(await acting).toMatchObject({ outcome: 'unknown', reason: { code: 'connection_lost' } });
    world.proxy.lose();
    expect(world.proxy.connections).toBe(before + 1);
    await expectNothingDone(env, token);
  });

  test.each([
    ['before the server saw it', 'lose-request', 0],
    ['after the server had done it', 'lose-reply', 5],
  ] as const)(
    'a connection that is cut exactly at COMMIT, %s, is unknown, and is not tried again',
    async (_when, fate, roleCount) => {
      const env = await environment();
      const token = randomUUID();
      const before = world.proxy.connections;
      world.proxy.once(/commit$/i, fate);
      expect(await rolesThroughProxy(env, { token })).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'connection_lost' },
      });
      expect(world.proxy.connections).toBe(before + 1);
      // The server may still be finishing what the cut connection asked for.
      await waitUntil('the backend is gone', async () => {
        const rows = await world.sql('select 1 from pg_stat_activity where pid = $1', [await backendOf(token)]);
        return rows.length === 0;
      });
      expect(await world.leftovers(env)).toHaveLength(roleCount);
      expect((await world.ledger(token)) !== undefined).toBe(roleCount > 0);
    },
  );

  test('a COMMIT that arrives long after its client gave up still does the work: that is what fences are for', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.once(/commit$/i, 'strand');
    expect(await rolesThroughProxy(env, { token })).toMatchObject({ outcome: 'unknown' });
    expect(await world.leftovers(env)).toEqual([]);
    world.proxy.release();
    await waitUntil('the late commit has been done', async () => (await world.leftovers(env)).length === 5);
    expect(await world.ledger(token)).toBeDefined();
    // And its backend keeps the session lock for as long as its connection seems to live.
    expect(await lockIsFree(env)).toBe(false);
    world.proxy.hangUp();
    await waitUntil('the lock is free', () => lockIsFree(env));
  });

  test.each([
    ['before the server saw it', 'lose-request', 0],
    ['after the server had done it', 'lose-reply', 1],
  ] as const)(
    'a CREATE DATABASE whose connection is cut %s is unknown, under a name that tells whose it is',
    async (_when, fate, count) => {
      const env = await environment();
      const token = randomUUID();
      world.proxy.once(/^create database/i, fate);
      const result = await world.actThroughProxy(env, 'database', world.spec(env, 'database'), { token });
      expect(result).toMatchObject({ outcome: 'unknown', reason: { code: 'connection_lost' } });
      const rows = await world.sql<{ oid: number }>('select oid from pg_database where datname = $1', [
        attemptDatabaseName(token),
      ]);
      expect(rows).toHaveLength(count);
      if (rows[0] !== undefined) env.identities = { databaseOid: rows[0].oid };
    },
  );

  test('an engine that cannot be reached is waited for, and then refused, with nothing done', async () => {
    const env = await environment();
    const token = randomUUID();
    world.proxy.rule(() => 'lose-request');
    const started = performance.now();
    const result = await rolesThroughProxy(env, { token, deadlineMs: 500 });
    world.proxy.rule(() => 'pass');
    expect(result).toMatchObject({ outcome: 'refused', reason: { code: 'engine_unreachable' } });
    expect(performance.now() - started).toBeGreaterThan(450);
    await expectNothingDone(env, token);
  });

  test('B016: an engine that comes back within the deadline is gone on with, under the same token', async () => {
    const env = await environment();
    const token = randomUUID();
    let lost = 0;
    world.proxy.rule((text) => {
      if (lost >= 3 || !/pg_advisory_lock/.test(text)) return 'pass';
      lost += 1;
      return 'lose-request';
    });
    expect((await rolesThroughProxy(env, { token })).outcome).toBe('applied');
    expect(lost).toBe(3);
  });
});

test('an engine’s own settings for a database or a role do not reach a batch of ours', async () => {
  const env = await environment();
  const hostile = [
    `alter database ${CONTROL} set default_transaction_read_only = on`,
    `alter database ${CONTROL} set search_path = public`,
    `alter database ${CONTROL} set default_transaction_isolation = serializable`,
    `alter database ${CONTROL} set synchronous_commit = off`,
    `alter role postgres set statement_timeout = 1`,
  ];
  for (const statement of hostile) await world.sql(statement);
  try {
    expect((await roles(env, { token: randomUUID() })).outcome).toBe('applied');
  } finally {
    await world.sql(`alter database ${CONTROL} reset all`);
    await world.sql('alter role postgres reset statement_timeout');
  }
});

test('a statement that finds its work done has left its claim’s number where a crash of the server does not take it', async () => {
  const env = await environment();
  const client = await world.admin();
  const position = async (what: 'insert' | 'flush'): Promise<string> =>
    (await client.query<{ lsn: string }>(`select pg_current_wal_${what}_lsn()::text as lsn`)).rows[0]!.lsn;
  // Otherwise the server itself would write it down a moment later.
  await world.sql(`alter system set wal_writer_delay = '10s'`);
  await world.sql('select pg_reload_conf()');
  try {
    for (let round = 0; round < 5; round += 1) {
      const before = await position('insert');
      const spec = { environmentId: env.id, databaseOid: 1_000_000 };
      expect(facts(await world.act(env, 'drop-database', spec))).toEqual({ alreadyAbsent: true });
      const after = await position('flush');
      const { rows } = await client.query('select $1::pg_lsn > $2::pg_lsn as flushed', [after, before]);
      expect(rows).toEqual([{ flushed: true }]);
    }
  } finally {
    await world.sql('alter system reset wal_writer_delay');
    await world.sql('select pg_reload_conf()');
  }
});

describe('connections that are made ahead', () => {
  const NAME = 'made ahead';
  const backends = async (): Promise<readonly number[]> =>
    (await world.sql<{ pid: number }>('select pid from pg_stat_activity where application_name = $1', [NAME])).map(
      ({ pid }) => pid,
    );
  const pidOf = async (client: pg.Client): Promise<number> =>
    (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid;
  const fresh = (): FreshConnections => new FreshConnections({ statementTimeoutMs: 5_000, applicationName: NAME });
  afterEach(async () => {
    await world.sql('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [NAME]);
    await waitUntil('they are gone', async () => (await backends()).length === 0);
  });

  test('are handed out once each: no batch gets a backend that another has used', async () => {
    const connections = fresh();
    connections.prepare(world.engine.place, CONTROL);
    connections.prepare(world.engine.place, CONTROL);
    const [ahead] = await waitUntil('it is made', async () => {
      const found = await backends();
      return found.length > 0 ? found : undefined;
    });
    const taken = [
      await connections.take(world.engine.place, CONTROL),
      await connections.take(world.engine.place, CONTROL),
    ];
    const pids = await Promise.all(taken.map(pidOf));
    expect(pids[0]).toBe(ahead);
    expect(new Set(pids).size).toBe(2);
    for (const client of taken) await client.end();
  });

  test('are not handed out when they broke while they waited', async () => {
    const connections = fresh();
    connections.prepare(world.engine.place, CONTROL);
    await waitUntil('it is made', async () => (await backends()).length === 1);
    await world.sql('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [NAME]);
    await waitUntil('it is gone', async () => (await backends()).length === 0);
    const client = await connections.take(world.engine.place, CONTROL);
    expect(await backends()).toEqual([await pidOf(client)]);
    await client.end();
  });

  test('B154: do not pile up in the engine, however many are used and thrown away', async () => {
    const connections = fresh();
    for (let round = 0; round < 30; round += 1) {
      connections.prepare(world.engine.place, CONTROL);
      const client = await connections.take(world.engine.place, CONTROL);
      connections.prepare(world.engine.place, CONTROL);
      await client.query('select 1');
      await client.end();
    }
    const left = await waitUntil('those that were used are gone', async () => {
      const found = await backends();
      return found.length <= 1 ? found : undefined;
    });
    expect(left).toHaveLength(1);
  });
});

test('B031: a statement whose answer never comes is given up, and counts as lost, not as refused', async () => {
  const client = await connectAdmin(world.placeBehindProxy, CONTROL, { statementTimeoutMs: 100 });
  world.proxy.once(/never answered/, 'hold');
  const error: unknown = await client.query('select 1 as "never answered"').catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  expect(classifyEngineError(error)).toBe('lost');
  world.proxy.lose();
  abandon(client);
});
