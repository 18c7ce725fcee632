/** Failures of this field that have no better place: each title begins with its id in FIELD-CASES. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { InstallationUnderTest, waitUntil } from '#testing';

const installation = new InstallationUnderTest();
const tag = Date.now().toString(36);

async function inCatalog<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  const catalog = await installation.catalog();
  try {
    return (await catalog.query<Row>(text, [...values])).rows;
  } finally {
    await catalog.end();
  }
}

test('B112: no list or detail call shows the weakest role any secret, whatever it asks for', async () => {
  const environment = await installation.ready(`walk-${tag}`);
  const passwords = (await installation.logins(environment.id)).map(({ password }) => password);
  const sealed = await inCatalog<{ sealed: Buffer }>(
    'select unnest(array[password_sealed, verifier_sealed]) as sealed from logins where environment_id = $1',
    [environment.id],
  );
  const key = `sfk_${randomBytes(24).toString('base64url')}`;
  await inCatalog(`insert into api_keys (id, name, key_hash, role) values ($1, $2, $3, 'viewer')`, [
    randomUUID(),
    `viewer-${tag}`,
    createHash('sha256').update(key).digest(),
  ]);
  const [operation] = await inCatalog<{ id: string; engine_id: string }>(
    'select id, engine_id from operations where environment_id = $1',
    [environment.id],
  );
  const { paths } = (await installation.request<{ paths: Record<string, object> }>('GET', '/openapi.json')).body;
  const asked = Object.entries(paths)
    .filter(([path, methods]) => 'get' in methods && !path.endsWith('/events'))
    .map(([path]) =>
      path
        .replace('{project}', 'default')
        .replace('/environments/{id}', `/environments/${environment.id}`)
        .replace('/operations/{id}', `/operations/${operation!.id}`)
        .replace('/engines/{id}', `/engines/${operation!.engine_id}`)
        .replace(/\{[^}]+\}/g, randomUUID()),
    );
  expect(asked.length).toBeGreaterThan(8);
  const forbidden = [
    ...passwords,
    ...sealed.flatMap(({ sealed: bytes }) => [bytes.toString('base64'), bytes.toString('hex')]),
    'SCRAM-SHA-256',
    new URL(installation.setting('SUREFOOT_CATALOG_URL')).password,
    installation.setting('SUREFOOT_API_KEY'),
  ];
  for (const path of asked) {
    const response = await fetch(`${installation.setting('SUREFOOT_URL')}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const text = await response.text();
    expect({ path, found: forbidden.filter((secret) => text.includes(secret)) }).toEqual({ path, found: [] });
    if (path.endsWith('/credentials')) expect(response.status).toBe(403);
  }
  await installation.ended((await installation.remove(environment.id)).id);
}, 60_000);

test('B116: a name that is used again has new passwords, and the old ones open nothing', async () => {
  const first = await installation.ready(`again-${tag}`);
  const old = await installation.logins(first.id);
  await installation.ended((await installation.remove(first.id)).id);
  const second = await installation.ready(`again-${tag}`);
  const logins = await installation.logins(second.id);
  for (const [index, login] of logins.entries()) {
    expect(login.password).not.toBe(old[index]!.password);
    await expect(installation.connect(old[index]!)).rejects.toMatchObject({ code: '28000' });
    await expect(
      installation.connect({ ...login, uri: login.uri.replace(login.password, old[index]!.password) }),
    ).rejects.toMatchObject({
      code: '28P01',
    });
  }
  // The secrets of what is gone are gone too.
  const kept = await inCatalog(
    'select 1 from logins where environment_id = $1 and (password_sealed is not null or verifier_sealed is not null)',
    [first.id],
  );
  expect(kept).toEqual([]);
  await installation.ended((await installation.remove(second.id)).id);
}, 60_000);

test('B137: a delete needs no stored secret, only recorded ids', async () => {
  const environment = await installation.ready(`unsealed-${tag}`);
  await inCatalog('update logins set password_sealed = null, verifier_sealed = null where environment_id = $1', [
    environment.id,
  ]);
  const ended = await installation.ended((await installation.remove(environment.id)).id);
  expect(ended).toMatchObject({ state: 'succeeded', reason: null });
}, 60_000);

test('B119: where an environment is reached is computed when it is read', async () => {
  const environment = await installation.ready(`moved-${tag}`);
  const [engine] = await inCatalog<{ id: string; port: number }>(`select id, port from engines where state = 'ready'`);
  await inCatalog('update engines set port = $2 where id = $1', [engine!.id, 1]);
  const shown = await installation.environment(environment.id);
  const [login] = await installation.logins(environment.id);
  await inCatalog('update engines set port = $2 where id = $1', [engine!.id, engine!.port]);
  expect(shown.connection.port).toBe(1);
  expect(login!.uri).toContain('localhost:1/');
  await installation.ended((await installation.remove(environment.id)).id);
}, 60_000);

test('B134: a delete that meets a backend which handles no interrupts waits, and ends once it does', async () => {
  const environment = await installation.ready(`frozen-${tag}`);
  const [login] = await installation.logins(environment.id);
  const other = await installation.ready(`frozen-other-${tag}`);
  const held = await installation.connect((await installation.logins(other.id))[0]!);
  const { rows } = await held.query<{ started: string }>(
    `select to_char(backend_start, 'YYYYMMDDHH24MISSUS') as started from pg_stat_activity where pid = pg_backend_pid()`,
  );
  expect(rows).toHaveLength(1);
  const pid = backendOnThisMachine(other.connection.users.migrate);
  process.kill(pid, 'SIGSTOP');
  try {
    const remove = await installation.remove(environment.id);
    await waitUntil('the drop is at work', async () =>
      (await installation.operation(remove.id)).effects.some(
        ({ kind, outcome }) => kind === 'drop-database' && outcome === 'pending',
      ),
    );
    // PostgreSQL waits for every backend to pass its barrier; so does the operation, without a guess.
    await setTimeout(2_000);
    expect((await installation.operation(remove.id)).state).toBe('running');
    process.kill(pid, 'SIGCONT');
    expect(await installation.ended(remove.id)).toMatchObject({ state: 'succeeded' });
    await expect(installation.connect(login!)).rejects.toMatchObject({ code: '28000' });
  } finally {
    process.kill(pid, 'SIGCONT');
    await held.end().catch(() => undefined);
  }
  await installation.ended((await installation.remove(other.id)).id);
}, 60_000);

/** The server process of a login's session: containers' processes are processes of this machine. */
function backendOnThisMachine(user: string): number {
  const found = readdirSync('/proc').find((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`postgres: ${user} `);
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`no backend of ${user} is running here`);
  return Number(found);
}

test('B149: an environment is deleted by its id: another spelling of its name names nothing', async () => {
  const environment = await installation.ready(`Cased-${tag}`);
  const listed = await installation.request<{ items: unknown[] }>(
    'GET',
    `/v1/projects/default/environments?name=cased-${tag}`,
  );
  expect(listed.body.items).toEqual([]);
  expect((await installation.request('DELETE', `/v1/environments/Cased-${tag}`)).status).toBeGreaterThanOrEqual(400);
  expect((await installation.environment(environment.id)).state).toBe('ready');
  await installation.ended((await installation.remove(environment.id)).id);
}, 60_000);

test('B154: creates leave no session behind on the engine, and the catalog’s sessions stay bounded', async () => {
  const administrator = await installation.administrator();
  const count = async (): Promise<number> =>
    (
      await administrator.query<{ n: number }>(
        `select count(*)::integer as n from pg_stat_activity where usename = 'postgres' and backend_type = 'client backend'`,
      )
    ).rows[0]!.n;
  const before = await count();
  for (let index = 0; index < 8; index += 1) {
    const environment = await installation.ready(`bounded-${tag}-${index}`);
    await installation.ended((await installation.remove(environment.id)).id);
  }
  await waitUntil('sessions are as few as before', async () => (await count()) <= before + 1);
  await administrator.end();
  const [sessions] = await inCatalog<{ n: number }>(
    `select count(*)::integer as n from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`,
  );
  expect(sessions!.n).toBeLessThan(60);
}, 120_000);
