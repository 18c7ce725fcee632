/** What the effects of a create make in a real engine: names, rights by tier, closed doors, foreign objects. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type pg from 'pg';
import type { ActResult } from '#effects';
import { attemptDatabaseName, parseMark, quoteIdentifier, TIERS } from '#kernel';
import { waitUntil } from '#testing';
import type { Environment } from './effects-world.ts';
import { CONTROL, EffectsWorld, facts } from './effects-world.ts';

const LONG = 120_000;

let world: EffectsWorld;
beforeAll(async () => {
  world = await EffectsWorld.make();
}, LONG);
afterAll(() => world.remove(), LONG);
afterEach(() => world.endClients());

const allRoles = ({ names }: Environment): readonly string[] => [
  names.owner,
  names.door,
  ...TIERS.map((tier) => names.logins[tier]),
];

/** SQLSTATE of what a statement is refused with; undefined when it is done. */
async function refusal(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
const NO_RIGHT = '42501';

describe('every name that is accepted works in every statement', () => {
  const NAMES = [
    ['a hyphen', 'my-app-1'],
    ['a hyphen in a login’s name', 'ci-bot'],
    ['capitals', 'AppDb'],
    ['a keyword', 'select'],
    ['another keyword', 'user'],
    ['a reserved word', 'asc'],
    ['a word of the rule file', 'all'],
    ['spaces', ' a b '],
    ['a double quote', 'x"; drop database postgres; --"y'],
    ['quotes and a backslash', `o'clock\\' "x"`],
    ['a dollar sign and a percent sign', '$1 $$ %s %I'],
    ['letters that are not ASCII', 'ümläut-日本'],
    ['the most bytes there can be, in characters of three', '語'.repeat(15)],
  ] as const;

  test.each(NAMES)('B002 B004 B006 B007 B011: %s, from create to delete: %j', async (_what, name) => {
    const env = await world.create(await world.environment(name), { extensions: ['pgcrypto', 'uuid-ossp'] });
    // Mixed case and quotes in default privileges, too (B007): what migrate makes, app uses and readonly reads.
    const migrate = await world.login(env, 'migrate');
    await migrate.query('create table things (id serial primary key, what text)');
    const app = await world.login(env, 'app');
    await app.query(`insert into things (what) values (encode(digest('x', 'sha256'), 'hex'))`);
    const readonly = await world.login(env, 'readonly');
    expect((await readonly.query('select * from things')).rows).toHaveLength(1);
    expect(await refusal(readonly.query(`insert into things (what) values ('y')`))).toBeDefined();

    expect(await world.leftovers(env)).toHaveLength(6);
    const { step, done } = await world.run('environment.delete', env);
    expect(step).toEqual({ do: 'finish', state: 'succeeded' });
    expect(done).toEqual(['retire-database applied', 'drop-database applied', 'drop-roles applied']);
    expect(await world.leftovers(env)).toEqual([]);
  });

  test('and the engine’s own databases and roles are all still there', async () => {
    const rows = await world.sql<{ name: string }>('select datname::text as name from pg_database order by 1');
    expect(rows.map(({ name }) => name)).toEqual(['postgres', CONTROL, 'surefoot_template', 'template0', 'template1']);
    const roles = await world.sql<{ name: string }>(
      `select rolname::text as name from pg_roles where rolname not like 'pg\\_%' order by 1`,
    );
    expect(roles.map(({ name }) => name)).toEqual([
      'postgres',
      'surefoot_estate',
      'surefoot_profile_local',
      'surefoot_profile_private',
    ]);
  });
});

describe('an environment', () => {
  let env: Environment;
  let neighbour: Environment;
  beforeAll(async () => {
    env = await world.create(await world.environment('Rights-1'));
    neighbour = await world.create(await world.environment('neighbour'));
  });

  test('carries our mark on its database and on each of its roles, all of one environment', async () => {
    const rows = await world.sql<{ comment: string | null }>(
      `select shobj_description(oid, 'pg_database') as comment from pg_database where oid = $1
       union all select shobj_description(oid, 'pg_authid') from pg_roles where rolname = any ($2)`,
      [env.identities.databaseOid, allRoles(env)],
    );
    expect(rows).toHaveLength(6);
    for (const { comment } of rows)
      expect(parseMark(comment)).toMatchObject({
        installation: world.engine.installation,
        kind: 'environment',
        id: env.id,
      });
  });

  test('has a database that belongs to the administrator, and roles that can do nothing but log in', async () => {
    const [database] = await world.sql(
      `select pg_get_userbyid(datdba)::text as owner, datconnlimit as limit, datallowconn as open from pg_database where oid = $1`,
      [env.identities.databaseOid],
    );
    expect(database).toEqual({ owner: 'postgres', limit: 20, open: true });
    const roles = await world.sql<{ name: string; login: boolean; limit: number; powers: boolean }>(
      `select rolname::text as name, rolcanlogin as login, rolconnlimit as limit,
              rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as powers
         from pg_roles where rolname = any ($1)`,
      [allRoles(env)],
    );
    expect(roles).toHaveLength(5);
    for (const { name, login, limit, powers } of roles) {
      const isLogin = TIERS.some((tier) => env.names.logins[tier] === name);
      expect([name, login, limit, powers]).toEqual([name, isLogin, isLogin ? 20 : -1, false]);
    }
  });

  test('stores verifiers as they were given: no password has reached the server', async () => {
    for (const tier of TIERS) {
      const [row] = await world.sql<{ stored: string }>(
        'select rolpassword as stored from pg_authid where rolname = $1',
        [env.names.logins[tier]],
      );
      expect(row!.stored).toBe(env.secrets.verifiers![tier]);
    }
  });

  test('migrate makes schemas and tables, app reads and writes what is made later, readonly only reads', async () => {
    const [migrate, app, readonly] = [
      await world.login(env, 'migrate'),
      await world.login(env, 'app'),
      await world.login(env, 'readonly'),
    ];
    for (const statement of [
      'create table first (id int generated always as identity, at timestamptz default now())',
      'create schema "Other-Schema"',
      'create table "Other-Schema"."Second" (id serial, what text)',
      'create view seen as select * from first',
    ])
      await migrate.query(statement);
    for (const statement of [
      'insert into first default values',
      'update first set at = now()',
      `insert into "Other-Schema"."Second" (what) values ('x') returning id`,
      'select * from seen',
      'delete from first where false',
    ])
      await app.query(statement);
    for (const table of ['first', 'seen', '"Other-Schema"."Second"'])
      expect((await readonly.query(`select * from ${table}`)).rows).toHaveLength(1);

    for (const statement of [
      'create table mine (a int)',
      'create schema mine',
      'drop table first',
      'truncate first',
      'alter table first add b int',
    ])
      expect([statement, await refusal(app.query(statement))]).toEqual([statement, NO_RIGHT]);
    await readonly.query('set default_transaction_read_only = off');
    for (const statement of [
      'insert into first default values',
      'update first set at = now()',
      'delete from first',
      'create table mine (a int)',
    ])
      expect([statement, await refusal(readonly.query(statement))]).toEqual([statement, NO_RIGHT]);
  });

  test('what a migration makes belongs to the owner role; what it makes as itself is shared all the same', async () => {
    const migrate = await world.login(env, 'migrate');
    await migrate.query('create table as_owner (a int)');
    await migrate.query('reset role');
    await migrate.query('set role none');
    await migrate.query('create table as_itself (a int, b serial)');
    const owners = await migrate.query<{ name: string; owner: string }>(
      `select relname::text as name, pg_get_userbyid(relowner)::text as owner from pg_class where relname in ('as_owner', 'as_itself') order by 1`,
    );
    expect(owners.rows).toEqual([
      { name: 'as_itself', owner: env.names.logins.migrate },
      { name: 'as_owner', owner: env.names.owner },
    ]);
    const app = await world.login(env, 'app');
    const readonly = await world.login(env, 'readonly');
    for (const table of ['as_owner', 'as_itself']) {
      await app.query(`insert into ${table} (a) values (1)`);
      expect((await readonly.query(`select a from ${table}`)).rows).toEqual([{ a: 1 }]);
    }
  });

  test('nobody in it can change what is ours: the database’s settings, name, mark and grants, or the tables of the guard', async () => {
    const database = quoteIdentifier(env.names.database);
    for (const tier of TIERS) {
      const client = await world.login(env, tier);
      await client.query('set default_transaction_read_only = off');
      for (const statement of [
        `alter database ${database} set work_mem = '1MB'`,
        `alter database ${database} connection limit 99`,
        `alter database ${database} rename to mine`,
        `comment on database ${database} is 'mine'`,
        `drop database ${database}`,
        'select * from surefoot.tokens',
        'delete from surefoot.ledger',
        'create table surefoot.mine (a int)',
        'drop schema surefoot cascade',
        `grant ${quoteIdentifier(env.names.owner)} to ${quoteIdentifier(env.names.logins.app)}`,
        `create role mine`,
      ]) {
        const code = await refusal(client.query(statement));
        expect([tier, statement, code]).toEqual([tier, statement, expect.stringMatching(/^(42501|55006)$/)]);
      }
      // Granting what one has no right to grant is a warning in PostgreSQL, and does nothing.
      await client.query(`grant connect on database ${database} to public`).catch(() => undefined);
    }
    const [row] = await world.sql<{ open: boolean }>(
      `select has_database_privilege('public', $1::oid, 'CONNECT') as open`,
      [env.identities.databaseOid],
    );
    expect(row!.open).toBe(false);
  });

  test('B159: PUBLIC may connect nowhere, and each login to its own database alone, by grant', async () => {
    const open = await world.sql<{ name: string }>(
      `select datname::text as name from pg_database where has_database_privilege('public', oid, 'CONNECT') and datname <> 'template0'`,
    );
    expect(open).toEqual([]);
    const reachable = await world.sql<{ role: string; database: string }>(
      `select r.rolname::text as role, d.datname::text as database from pg_roles r, pg_database d
        where r.rolname = any ($1) and d.datallowconn and has_database_privilege(r.oid, d.oid, 'CONNECT')`,
      [[...allRoles(env), ...allRoles(neighbour)]],
    );
    const own = [env, neighbour].flatMap(({ names }) =>
      TIERS.map((tier) => ({ role: names.logins[tier], database: names.database })),
    );
    const byRole = (one: { role: string }, other: { role: string }): number => (one.role < other.role ? -1 : 1);
    expect([...reachable].sort(byRole)).toEqual(own.sort(byRole));
  });

  test('B159: real logins are refused by everything but their own database', async () => {
    for (const database of ['postgres', 'template1', CONTROL, 'surefoot_template', neighbour.names.database])
      for (const tier of TIERS)
        expect([database, await refusal(world.login(env, tier, database))]).toEqual([
          database,
          expect.stringMatching(/^(28000|42501|55000)$/),
        ]);
  });

  test('B159: nor do they get in where a rule would let them: the grant alone keeps them out', async () => {
    // Membership in the neighbour's door satisfies the rule; only CONNECT is missing then.
    await world.sql(`grant ${quoteIdentifier(neighbour.names.door)} to ${quoteIdentifier(env.names.logins.app)}`);
    try {
      expect(await refusal(world.login(env, 'app', neighbour.names.database))).toBe(NO_RIGHT);
    } finally {
      await world.sql(`revoke ${quoteIdentifier(neighbour.names.door)} from ${quoteIdentifier(env.names.logins.app)}`);
    }
  });

  test('is found as it should be by the probe, and a right too many is found by it', async () => {
    const spec = {
      environmentId: env.id,
      databaseOid: env.identities.databaseOid!,
      names: env.names,
      refusedDatabases: ['postgres', 'template1', CONTROL, neighbour.names.database],
    };
    expect((await world.act(env, 'probe', spec)).outcome).toBe('applied');
    const app = quoteIdentifier(env.names.logins.app);
    const wrongs: readonly (readonly [string, string, string])[] = [
      [`grant create on schema public to ${app}`, `revoke create on schema public from ${app}`, env.names.database],
      [
        `grant ${quoteIdentifier(neighbour.names.door)}, ${quoteIdentifier(neighbour.names.logins.app)} to ${app}`,
        `revoke ${quoteIdentifier(neighbour.names.door)}, ${quoteIdentifier(neighbour.names.logins.app)} from ${app}`,
        CONTROL,
      ],
      [`alter role ${app} nologin`, `alter role ${app} login`, CONTROL],
      [`revoke usage on schema public from ${app}`, `grant usage on schema public to ${app}`, env.names.database],
    ];
    for (const [wrong, right, database] of wrongs) {
      await world.sql(wrong, [], database);
      const result = await world.act(env, 'probe', spec);
      await world.sql(right, [], database);
      expect([wrong, result]).toEqual([
        wrong,
        expect.objectContaining({ outcome: 'refused', reason: expect.objectContaining({ code: 'probe_failed' }) }),
      ]);
    }
    const other = { ...spec, databaseOid: neighbour.identities.databaseOid! };
    expect(await world.act(env, 'probe', other)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'probe_failed' },
    });
    expect((await world.act(env, 'probe', spec)).outcome).toBe('applied');
  });

  test('B156: is used by its clients without one failed query while others are made and removed', async () => {
    const app = await world.login(env, 'app');
    let asking = true;
    let answered = 0;
    const user = (async () => {
      while (asking) {
        await app.query('select 1');
        const fresh = await world.login(env, 'readonly');
        await fresh.query('select 1');
        await fresh.end();
        answered += 1;
      }
    })();
    const other = await world.create(await world.environment('other'));
    await world.run('environment.delete', other);
    asking = false;
    await user;
    expect(answered).toBeGreaterThan(0);
  });
});

describe('objects that are not ours (B014)', () => {
  const secretsOf = (env: Environment): readonly string[] => [
    ...Object.values(env.passwords),
    ...Object.values(env.secrets.verifiers!),
    ...Object.values(env.secrets.verifiers!).flatMap((verifier) =>
      verifier.split(/[$:]/).filter((part) => part.length > 20),
    ),
  ];
  function expectNoSecret(env: Environment, text: string): void {
    for (const secret of secretsOf(env)) expect(text).not.toContain(secret);
  }
  const foreign = { outcome: 'refused', reason: { code: 'foreign_object' } };

  test.each(['owner', 'door', 'migrate', 'app', 'readonly'] as const)(
    'B014 B002: a role that has the name of the %s already stops the whole set, is left as it is, and no verifier is told',
    async (which) => {
      const env = await world.environment('taken');
      const name = which === 'owner' || which === 'door' ? env.names[which] : env.names.logins[which];
      await world.sql(`create role ${quoteIdentifier(name)} nologin`);
      const token = randomUUID();
      const result = await world.act(env, 'roles', world.spec(env, 'roles'), { token });
      expect(result).toMatchObject(foreign);
      expect(JSON.stringify(result)).toContain(JSON.stringify(name).slice(1, -1));
      expectNoSecret(env, JSON.stringify(result));
      expect(await world.leftovers(env)).toEqual([name]);
      expect(await world.ledger(token)).toBeUndefined();
      const [found] = await world.sql(
        'select rolcanlogin as login, shobj_description(oid, $2) as comment from pg_roles where rolname = $1',
        [name, 'pg_authid'],
      );
      expect(found).toEqual({ login: false, comment: null });
      await world.sql(`drop role ${quoteIdentifier(name)}`);
    },
  );

  test('B029 B109: one that comes into being between look and create is refused by the server; neither answer nor log holds a verifier', async () => {
    const env = await world.environment('raced');
    const name = env.names.logins.app;
    world.proxy.once(/create role/, 'hold');
    const acting = world.actThroughProxy(env, 'roles', world.spec(env, 'roles'));
    await waitUntil('the statements wait', () => world.proxy.held.length === 1);
    await world.sql(`create role ${quoteIdentifier(name)} nologin`);
    world.proxy.release();
    const result: ActResult = await acting;
    expect(result).toMatchObject(foreign);
    expectNoSecret(env, JSON.stringify(result));
    expect(await world.leftovers(env)).toEqual([name]);
    expectNoSecret(env, await world.log());
    await world.sql(`drop role ${quoteIdentifier(name)}`);
  });

  test('a whole create that meets one fails, leaves it alone, and undoes what it had made', async () => {
    const env = await world.environment('half');
    await world.sql(`create database ${quoteIdentifier(env.names.database)}`);
    const { step, done } = await world.run('environment.create', env);
    expect(step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'foreign_object' } });
    expect(done).toEqual([
      'roles undone',
      'database undone',
      'interior undone',
      'publish-database foreign_object',
      'retire-database applied',
      'drop-database applied',
      'drop-roles applied',
    ]);
    // The database of that name is still there, and nothing else.
    expect(await world.leftovers(env)).toEqual([env.names.database]);
    await world.sql(`drop database ${quoteIdentifier(env.names.database)}`);
  });

  test('a database that has the final name is left as it is, and so is what was built', async () => {
    const env = await world.environment('named');
    await world.run('environment.create', env, { until: 'publish-database' });
    await world.sql(`create database ${quoteIdentifier(env.names.database)} connection limit 7`);
    const before = await world.sql('select oid, datname, datconnlimit, datacl from pg_database order by 1');
    const token = randomUUID();
    expect(await world.act(env, 'publish-database', world.spec(env, 'publish-database'), { token })).toMatchObject(
      foreign,
    );
    expect(await world.sql('select oid, datname, datconnlimit, datacl from pg_database order by 1')).toEqual(before);
    expect(await world.ledger(token)).toBeUndefined();
    await world.sql(`drop database ${quoteIdentifier(env.names.database)}`);
    await world.run('environment.delete', env);
  });

  test('a database under the attempt’s name, which nobody but us gives, is never taken for ours', async () => {
    const env = await world.environment('attempt');
    const token = randomUUID();
    await world.sql(`create database ${quoteIdentifier(attemptDatabaseName(token))}`);
    expect(await world.act(env, 'database', world.spec(env, 'database'), { token })).toMatchObject(foreign);
    await world.sql(`drop database ${quoteIdentifier(attemptDatabaseName(token))}`);
  });

  test('an extension that the server does not have refuses the whole inside, and says which', async () => {
    const env = await world.environment('extension');
    const { step, done } = await world.run('environment.create', env, { extensions: ['pgcrypto', 'no-such"thing'] });
    expect(done.slice(0, 3)).toEqual(['roles undone', 'database undone', 'interior refused_by_engine']);
    expect(step).toMatchObject({
      do: 'finish',
      state: 'failed',
      reason: { message: expect.stringContaining('no-such"thing') },
    });
    expect(await world.leftovers(env)).toEqual([]);
  });
});

describe('a database that is being built (invariant 10)', () => {
  test('is reachable by nobody but the administrator, from its birth until it is published', async () => {
    const env = await world.environment('closed');
    for (const until of ['interior', 'publish-database'] as const) {
      if (until === 'interior') await world.run('environment.create', env, { until });
      else expect((await world.act(env, 'interior', world.spec(env, 'interior'))).outcome).toBe('applied');
      const [found] = await world.sql<{ name: string; limit: number; comment: string | null }>(
        `select datname::text as name, datconnlimit as limit, shobj_description(oid, 'pg_database') as comment from pg_database where oid = $1`,
        [env.identities.databaseOid],
      );
      expect(found).toEqual({
        name: expect.stringMatching(/^surefoot_attempt_[0-9a-f]{32}$/),
        limit: 0,
        comment: null,
      });
      // Even with every door and every rule open to them: the connection limit of nought is for all but superusers.
      const { logins, door } = env.names;
      await world.sql(`grant surefoot_profile_local to ${quoteIdentifier(door)}`);
      await world.sql(
        `create role ${quoteIdentifier(found!.name)} in role surefoot_profile_local role ${quoteIdentifier(logins.migrate)}`,
      );
      const code = await refusal(world.login(env, 'migrate', found!.name));
      await world.sql(`drop role ${quoteIdentifier(found!.name)}`);
      await world.sql(`revoke surefoot_profile_local from ${quoteIdentifier(door)}`);
      expect(code).toMatch(/^(53300|42501|28000)$/);
    }
    await world.run('environment.delete', env);
  });

  test('B161 B162: is waited for while a session is on the template, under the same token, and given up at the deadline', async () => {
    const [patient, hasty] = [await world.environment('patient'), await world.environment('hasty')];
    await world.sql('alter database surefoot_template allow_connections true');
    const session = await world.admin('surefoot_template');
    await world.sql('alter database surefoot_template allow_connections false');
    const create = (env: Environment, deadlineMs: number): Promise<ActResult> =>
      world.actThroughProxy(env, 'database', world.spec(env, 'database'), { deadlineMs });
    const before = world.proxy.count(/^create database/);
    const [waiting, giving] = [create(patient, 15_000), create(hasty, 0)];
    // The server itself waits for five seconds, and then says no.
    expect(await giving).toMatchObject({ outcome: 'refused', reason: { code: 'database_in_use' } });
    await waitUntil('it is tried again', () => world.proxy.count(/^create database/) >= before + 3);
    await session.end();
    patient.identities = { databaseOid: facts(await waiting)['databaseOid'] as number };
    await world.run('environment.delete', patient);
    expect([...(await world.leftovers(patient)), ...(await world.leftovers(hasty))]).toEqual([]);
  });

  test('is published while sessions are on it: they are ended, and the rename waits for their end', async () => {
    const env = await world.environment('busy');
    await world.run('environment.create', env, { until: 'publish-database' });
    const [{ name }] = (await world.sql<{ name: string }>(
      'select datname::text as name from pg_database where oid = $1',
      [env.identities.databaseOid],
    )) as [{ name: string }];
    const sessions: pg.Client[] = [await world.admin(name), await world.admin(name)];
    const ended = sessions.map((session) => new Promise((resolve) => session.once('end', resolve)));
    await sessions[1]!.query('begin; create table public.half_done (a int)');
    const token = randomUUID();
    const result = await world.act(env, 'publish-database', world.spec(env, 'publish-database'), { token });
    expect(facts(result)).toEqual({ database: env.names.database });
    await Promise.all(ended);
    expect(await world.ledger(token)).toEqual({ database: env.names.database });
    expect(await world.sql(`select 1 from pg_class where relname = 'half_done'`, [], env.names.database)).toEqual([]);
    await world.run('environment.delete', env);
  });

  test('is published whole or not at all: a connection that breaks before the commit leaves it as it was', async () => {
    const env = await world.environment('whole');
    await world.run('environment.create', env, { until: 'publish-database' });
    const state = (): Promise<object[]> =>
      world.sql('select datname, datconnlimit, datacl::text from pg_database where oid = $1', [
        env.identities.databaseOid,
      ]);
    const before = await state();
    world.proxy.once(/commit$/i, 'lose-request');
    const result = await world.actThroughProxy(env, 'publish-database', world.spec(env, 'publish-database'));
    expect(result.outcome).toBe('unknown');
    await waitUntil('the lost backend has ended', async () => {
      const rows = await world.sql(
        `select 1 from pg_stat_activity where query ~ 'surefoot.ledger' and pid <> pg_backend_pid()`,
      );
      return rows.length === 0;
    });
    expect(await state()).toEqual(before);
    await world.run('environment.delete', env);
  });

  test('that is gone, or has a name that an attempt does not have, is not published', async () => {
    const env = await world.environment('gone');
    const stranger = await world.create(await world.environment('stranger'));
    for (const databaseOid of [1, stranger.identities.databaseOid!]) {
      const spec = { ...world.spec(env, 'publish-database'), databaseOid };
      expect(await world.act(env, 'publish-database', spec)).toMatchObject({
        outcome: 'refused',
        reason: { code: 'database_gone' },
      });
    }
    expect(
      await world.sql('select datname::text as name from pg_database where oid = $1', [
        stranger.identities.databaseOid,
      ]),
    ).toEqual([{ name: stranger.names.database }]);
  });

  test('that is gone has no inside', async () => {
    const env = await world.environment('inside');
    const spec = { ...world.spec(env, 'interior'), databaseOid: 1_000_000_000 };
    expect(await world.act(env, 'interior', spec)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'database_gone' },
    });
  });
});
