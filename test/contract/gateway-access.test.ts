import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import type { OwnDatabase } from './catalog-server.ts';
import { addKey, GatewayUnderTest, seededDatabase } from './gateway-world.ts';

const ROLES = ['viewer', 'developer', 'operator', 'admin'] as const;

let database: OwnDatabase;
let gateway: GatewayUnderTest;
const keys = new Map<string, string>();
const projects = { mine: '', other: '' };
const mine = { environment: '', operation: '' };
const other = { environment: '', operation: '' };
let engineOperation: string;

beforeAll(async () => {
  database = await seededDatabase();
  gateway = await (await GatewayUnderTest.start(database.url)).ready();
  for (const [name, made] of [
    ['mine', mine],
    ['other', other],
  ] as const) {
    projects[name] = (await gateway.request('POST', '/v1/projects', { body: { name } })).body.id;
    const { body } = await gateway.request('POST', `/v1/projects/${name}/environments`, { body: { name: 'app' } });
    made.environment = body.environmentId;
    made.operation = body.id;
  }
  engineOperation = randomUUID();
  await database.query(
    `insert into operations (id, kind, host_id, engine_id, state) select $1, 'engine.create', host_id, id, 'succeeded' from engines`,
    [engineOperation],
  );
  for (const role of ROLES) {
    keys.set(role, await addKey(database, `${role} of all`, role));
    keys.set(`${role} of mine`, await addKey(database, `${role} of mine`, role, [projects.mine]));
  }
});
afterAll(async () => {
  await gateway.stop();
  await database.drop();
});

async function status(who: string, method: string, path: string, body?: unknown): Promise<number> {
  return (await gateway.request(method, path, { key: keys.get(who)!, ...(body === undefined ? {} : { body }) })).status;
}

test('without a key, and with a wrong one, everything but health is a 401 that says how to ask', async () => {
  for (const key of [undefined, 'sfk_wrong', ''])
    for (const path of [
      '/v1/projects',
      `/v1/environments/${mine.environment}`,
      '/v1/admin/engines',
      '/v1/admin/keys',
    ]) {
      const answer = await gateway.get(path, { key });
      expect(answer).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
  for (const path of ['/health/live', '/health/ready', '/metrics', '/openapi.json'])
    expect((await gateway.get(path, { key: undefined })).status).toBe(200);
});

describe('what each role may do', () => {
  const body = { name: 'role-test' };
  const asked = [
    ['viewer', 'GET', () => '/v1/projects', undefined, 200],
    ['viewer', 'GET', () => `/v1/environments/${mine.environment}`, undefined, 200],
    ['viewer', 'GET', () => `/v1/operations/${mine.operation}`, undefined, 200],
    ['developer', 'GET', () => `/v1/environments/${mine.environment}/credentials`, undefined, 409],
    ['developer', 'POST', () => '/v1/projects/mine/environments', { name: 'pg_' }, 400],
    ['developer', 'DELETE', () => `/v1/environments/${randomUUID()}`, undefined, 404],
    ['developer', 'POST', () => `/v1/operations/${randomUUID()}/cancel`, undefined, 404],
    ['operator', 'GET', () => '/v1/admin/engines', undefined, 200],
    ['operator', 'GET', () => '/v1/admin/cases', undefined, 200],
    ['admin', 'POST', () => '/v1/projects', { name: '-' }, 400],
    ['admin', 'GET', () => '/v1/admin/registries', undefined, 200],
    ['admin', 'POST', () => '/v1/admin/registries', {}, 400],
    ['admin', 'DELETE', () => '/v1/admin/registries/nowhere.example.com', undefined, 404],
    // What belongs to an engine, only who may make engines may cancel.
    ['admin', 'POST', () => `/v1/operations/${engineOperation}/cancel`, undefined, 409],
  ] as const;
  test.each(asked)('%s is the least role for %s #%#', async (least, method, path, sent, answer) => {
    for (const role of ROLES) {
      const enough = ROLES.indexOf(role) >= ROLES.indexOf(least);
      expect([role, await status(role, method, path(), sent)]).toEqual([role, enough ? answer : 403]);
    }
  });

  test('a refusal for the role comes before the body is judged', async () => {
    expect(await status('viewer', 'POST', '/v1/projects/mine/environments', body)).toBe(403);
    expect(await status('viewer', 'POST', '/v1/projects/mine/environments', { wrong: true })).toBe(403);
  });
});

test('another project’s things are not there: the same answer as for what never was', async () => {
  const pairs = [
    ['GET', `/v1/environments/${other.environment}`, `/v1/environments/${randomUUID()}`],
    ['DELETE', `/v1/environments/${other.environment}`, `/v1/environments/${randomUUID()}`],
    ['GET', `/v1/environments/${other.environment}/credentials`, `/v1/environments/${randomUUID()}/credentials`],
    ['GET', `/v1/operations/${other.operation}`, `/v1/operations/${randomUUID()}`],
    ['GET', `/v1/operations/${other.operation}/events`, `/v1/operations/${randomUUID()}/events`],
    ['POST', `/v1/operations/${other.operation}/cancel`, `/v1/operations/${randomUUID()}/cancel`],
    ['GET', `/v1/operations/${engineOperation}`, `/v1/operations/${randomUUID()}`],
    ['GET', '/v1/projects/other', '/v1/projects/nowhere'],
    ['GET', `/v1/projects/${projects.other}`, `/v1/projects/${randomUUID()}`],
    ['GET', '/v1/projects/other/environments', '/v1/projects/nowhere/environments'],
  ] as const;
  const key = keys.get('admin of mine')!;
  for (const [method, theirs, nowhere] of pairs) {
    const [hidden, absent] = [
      await gateway.request(method, theirs, { key }),
      await gateway.request(method, nowhere, { key }),
    ];
    expect([theirs, hidden.status]).toEqual([theirs, 404]);
    expect(hidden.body).toEqual(absent.body);
  }
  const create = { key, body: { name: 'x' } };
  expect((await gateway.request('POST', '/v1/projects/other/environments', create)).status).toBe(404);
  expect((await gateway.get(`/v1/operations/${other.operation}`)).body.state).toBe('queued');
});

test('lists hold what the key may see, and nothing of others', async () => {
  const key = keys.get('viewer of mine')!;
  expect((await gateway.get('/v1/projects', { key })).body.items.map(({ name }) => name)).toEqual(['mine']);
  const operations = (await gateway.get('/v1/operations', { key })).body.items;
  expect(operations.map(({ id }) => id)).toEqual([mine.operation]);
  expect((await gateway.get(`/v1/operations?environment=${other.environment}`, { key })).body.items).toEqual([]);
  const all = (await gateway.get('/v1/operations')).body.items.map(({ id }) => id);
  expect(all).toEqual(expect.arrayContaining([mine.operation, other.operation, engineOperation]));
});

test('a key that is limited to projects makes none', async () => {
  expect(await status('admin of mine', 'POST', '/v1/projects', { name: 'third' })).toBe(403);
});

test('a revoked key is refused within a few seconds', async () => {
  const key = await addKey(database, 'short', 'viewer');
  expect((await gateway.get('/v1/projects', { key })).status).toBe(200);
  await database.query(`update api_keys set revoked_at = now() where name = 'short'`);
  await waitUntil('it is refused', async () => (await gateway.get('/v1/projects', { key })).status === 401, {
    deadlineMs: 8_000,
  });
}, 20_000);

describe('secrets', () => {
  beforeAll(async () => {
    await database.query(`update environments set state = 'ready' where id = $1`, [mine.environment]);
  });

  test('credentials work as an address, once the environment is ready, and each look is audited', async () => {
    const key = keys.get('developer of mine')!;
    const { status: seen, body } = await gateway.get(`/v1/environments/${mine.environment}/credentials`, { key });
    expect(seen).toBe(200);
    expect(body.logins.map(({ tier }) => tier)).toEqual(['migrate', 'app', 'readonly']);
    for (const { tier, user, password, uri } of body.logins) {
      const url = new URL(uri);
      expect(user).toBe(`app_${mine.environment.slice(0, 8)}_${tier}`);
      expect([url.protocol, decodeURIComponent(url.username), url.password, url.host]).toEqual([
        'postgresql:',
        user,
        password,
        'localhost:15432',
      ]);
      expect(url.searchParams.get('sslmode')).toBe('verify-full');
      expect(url.searchParams.get('sslrootcert')).toBe(`${gateway.home}/host/ca/ca.pem`);
    }
    const looks = await database.query(`select actor from audit where action = 'credentials.show' and subject = $1`, [
      mine.environment,
    ]);
    expect(looks).toEqual([{ actor: 'key developer of mine' }]);
  });

  test('B111 B112: whatever the weakest role can ask for, no answer holds a password, a verifier or a key', async () => {
    const { body } = await gateway.get(`/v1/environments/${mine.environment}/credentials`);
    const sealed = await database.query<{ text: string }>(
      `select unnest(array[encode(s, 'base64'), encode(s, 'hex'), encode(s, 'escape')]) as text
         from (select unnest(array[password_sealed, verifier_sealed]) as s from logins
               union all select key_hash from api_keys) v`,
    );
    const secrets = [
      ...body.logins.map(({ password }) => password),
      ...sealed.map(({ text }) => text),
      ...keys.values(),
    ];
    expect(secrets.length).toBeGreaterThan(20);
    const { paths } = JSON.parse((await gateway.get('/openapi.json')).text) as { paths: Record<string, object> };
    const gets = Object.keys(paths).filter((path) => 'get' in paths[path]!);
    expect(gets.length).toBeGreaterThan(10);
    const ids: Record<string, string> = { project: 'mine' };
    for (const path of gets) {
      if (path.endsWith('/events')) continue;
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        name in ids ? ids[name]! : path.includes('operations') ? mine.operation : mine.environment,
      );
      // Who may see credentials is a question of rights; whether anything else shows them is this one.
      const operator = path.endsWith('/credentials') ? [] : ['operator'];
      for (const who of ['viewer', 'viewer of mine', ...operator]) {
        const { text } = await gateway.get(filled, { key: keys.get(who)! });
        for (const secret of secrets) expect(text).not.toContain(secret);
      }
    }
    for (const secret of secrets) expect(gateway.output).not.toContain(secret);
  });

  test('logins of what is not ready are not shown', async () => {
    expect((await gateway.get(`/v1/environments/${other.environment}/credentials`)).body).toMatchObject({
      status: 409,
      code: 'environment_not_ready',
    });
  });
});
