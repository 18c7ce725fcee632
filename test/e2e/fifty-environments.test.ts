import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EnvironmentView, LoginView } from '#testing';
import { InstallationUnderTest } from '#testing';

const COUNT = 50;
const installation = new InstallationUnderTest();
let environments: readonly EnvironmentView[] = [];
const logins = new Map<string, readonly LoginView[]>();

beforeAll(async () => {
  const run = Date.now().toString(36);
  const operations = await Promise.all(
    Array.from({ length: COUNT }, (_, index) => installation.create(`many-${run}-${index}`)),
  );
  const ended = await Promise.all(operations.map(({ id }) => installation.ended(id, 300_000)));
  expect(ended.filter(({ state }) => state !== 'succeeded')).toEqual([]);
  environments = await Promise.all(ended.map(({ environmentId }) => installation.environment(environmentId ?? '')));
  for (const { id } of environments) logins.set(id, await installation.logins(id));
}, 320_000);

afterAll(async () => {
  const operations = await Promise.all(environments.map(({ id }) => installation.remove(id)));
  await Promise.all(operations.map(({ id }) => installation.ended(id, 300_000)));
}, 320_000);

test('fifty environments that were asked for at once all become ready', () => {
  expect(environments.map(({ state }) => state)).toEqual(Array.from({ length: COUNT }, () => 'ready'));
});

test('B159: each login reaches its own database and is refused by the engine’s own and by three others', async () => {
  for (const [index, { id, connection }] of environments.entries()) {
    const others = [1, 7, 23].map((step) => environments[(index + step) % COUNT]!.connection.database);
    for (const login of logins.get(id)!) {
      const own = await installation.connect(login);
      const { rows } = await own.query<{ name: string }>('select current_database() as name');
      await own.end();
      expect(rows[0]!.name).toBe(connection.database);
      const closed = ['postgres', 'template1', 'surefoot_control', 'surefoot_template', ...others];
      const answers = await Promise.all(closed.map((database) => refusal(login, database)));
      expect(answers).toEqual(closed.map(() => '28000'));
    }
  }
}, 120_000);

test('B159: in the system catalogs no login may connect to any database but its own', async () => {
  const administrator = await installation.administrator();
  const { rows } = await administrator.query<{ login: string; database: string }>(
    `select r.rolname as login, d.datname as database
       from pg_roles r cross join pg_database d
      where r.rolcanlogin and not r.rolsuper and d.datallowconn and has_database_privilege(r.oid, d.oid, 'CONNECT')`,
  );
  // The rule file's samerole: a role that is named as the database, of which the login is a member.
  const doors = await administrator.query<{ login: string; door: string }>(
    `select r.rolname as login, d.datname as door from pg_roles r join pg_database d on true
       join pg_roles o on o.rolname = d.datname
      where r.rolcanlogin and not r.rolsuper and pg_has_role(r.oid, o.oid, 'MEMBER')`,
  );
  await administrator.end();
  for (const { id, connection } of environments)
    for (const { user } of logins.get(id)!) {
      expect(rows.filter(({ login }) => login === user).map(({ database }) => database)).toEqual([connection.database]);
      expect(doors.rows.filter(({ login }) => login === user).map(({ door }) => door)).toEqual([connection.database]);
    }
}, 60_000);

/** SQLSTATE of the refusal; `connected` when there was none. */
async function refusal(login: LoginView, database: string): Promise<string> {
  try {
    const client = await installation.connect(login, database);
    await client.end();
    return 'connected';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
