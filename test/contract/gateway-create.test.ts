import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { settings, type OwnDatabase } from './catalog-server.ts';
import { addKey, ENGINE, GatewayUnderTest, HOST, seededDatabase } from './gateway-world.ts';

let database: OwnDatabase;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  database = await seededDatabase();
  gateway = await (await GatewayUnderTest.start(database.url)).ready();
});
afterAll(async () => {
  await gateway.stop();
  await database.drop();
});

async function one(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>> {
  const rows = await database.query<Record<string, unknown>>(text, values);
  expect(rows).toHaveLength(1);
  return rows[0]!;
}

const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);

test('an accepted create has written everything: environment, logins, operation, job, outbox and audit', async () => {
  const body = { name: 'whole', extensions: ['pgcrypto'], connectionLimit: 5, labels: { team: 'a' } };
  const answer = await gateway.create('whole', { body });
  expect(answer.status).toBe(202);
  expect(answer.headers.get('location')).toBe(`/v1/operations/${answer.body.id}`);
  expect(answer.body).toEqual({
    id: UUID,
    kind: 'environment.create',
    environmentId: UUID,
    environmentName: 'whole',
    state: 'queued',
    stage: 'queued',
    attempt: 0,
    effects: [],
    reason: null,
    createdAt: TIME,
    finishedAt: null,
  });
  const { id: operationId, environmentId } = answer.body;
  const database_name = `whole_${environmentId.slice(0, 8)}`;
  expect(await one('select * from environments where id = $1', [environmentId])).toMatchObject({
    state: 'provisioning',
    engine_id: ENGINE,
    extensions: ['pgcrypto'],
    connection_limit: 5,
    labels: { team: 'a' },
    database_name,
    identities: {},
  });
  const logins = await database.query<{ password_sealed: Buffer }>(
    'select tier, user_name, password_sealed, verifier_sealed from logins where environment_id = $1',
    [environmentId],
  );
  expect(logins).toHaveLength(3);
  expect(await one('select * from operations where id = $1', [operationId])).toMatchObject({
    host_id: HOST,
    engine_id: ENGINE,
    request: { ...body, profile: 'local' },
  });
  const job = await one('select id, host_id, schema_version from jobs where operation_id = $1', [operationId]);
  expect(
    await one(`select exchange, routing_key, message from outbox where message ->> 'jobId' = $1`, [job['id']]),
  ).toEqual({
    exchange: '',
    routing_key: `surefoot.jobs.${HOST}`,
    message: { version: 1, jobId: job['id'] },
  });
  expect(await one('select actor, action, detail from audit where subject = $1', [environmentId])).toEqual({
    actor: 'key admin',
    action: 'environment.create',
    detail: { operationId },
  });
  expect((await gateway.get(`/v1/environments/${environmentId}`)).body).toEqual({
    id: environmentId,
    project: 'default',
    name: 'whole',
    state: 'provisioning',
    engine: 'main',
    host: HOST,
    profile: 'local',
    extensions: ['pgcrypto'],
    connectionLimit: 5,
    labels: { team: 'a' },
    reason: null,
    services: [],
    connection: {
      host: 'localhost',
      port: 15432,
      database: database_name,
      users: {
        migrate: `${database_name}_migrate`,
        app: `${database_name}_app`,
        readonly: `${database_name}_readonly`,
      },
      sslmode: 'verify-full',
    },
    createdAt: TIME,
    lastObservedAt: null,
  });
});

test('B122: a name that is taken is refused with the id of the one that has it', async () => {
  const first = await gateway.create('taken');
  const second = await gateway.create('taken');
  expect(second.status).toBe(409);
  expect(second.headers.get('content-type')).toContain('application/problem+json');
  expect(second.body).toMatchObject({ code: 'environment_exists', environmentId: first.body.environmentId });
});

test('of many requests for one name at once, one is accepted', async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, () => gateway.create('race')));
  expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array.from({ length: 11 }, () => 409)]);
  await one(`select 1 from environments where name = 'race'`);
  await one(`select 1 from operations where request ->> 'name' = 'race'`);
});

test.each([
  ['B001: a hyphen', 'my-app-1'],
  ['B004: a hyphen at the end', 'ci-bot-'],
  ['B006: capitals', 'AppDb'],
  ['B011: a reserved word', 'select'],
  ['B011: another reserved word', 'user'],
  ['quotes and a backslash', `it's "quoted" \\`],
  ['a percent sign, a question mark and a hash', '100%?#'],
  ['letters beyond ASCII', 'Grüße'],
  ['a character of four bytes', '🐘'],
  ['spaces around', ' a '],
  ['B009: 45 bytes in 15 characters', '日'.repeat(15)],
])('a name with %s is accepted, shown as it is, and found by it', async (_what, name) => {
  const { status, body } = await gateway.create(name);
  expect(status).toBe(202);
  const shown = await gateway.get(`/v1/environments/${body.environmentId}`);
  expect(shown.body.name).toBe(name);
  const { database: longest, users } = shown.body.connection;
  for (const derived of [longest, ...Object.values<string>(users)]) {
    expect(Buffer.byteLength(derived)).toBeLessThanOrEqual(63);
    expect(derived.slice(name.length)).toMatch(/^_[0-9a-f]{8}(_migrate|_app|_readonly)?$/);
  }
  const listed = await gateway.get(`/v1/projects/default/environments?name=${encodeURIComponent(name)}`);
  expect(listed.body.items.map(({ id }) => id)).toEqual([body.environmentId]);
});

test.each(['', 'a/b', 'pg_x', 'a\nb', 'a\0b', 'a\u2028b', '日'.repeat(16), 'x'.repeat(46)])(
  'B001: the name %j is one 400 that says the rule, and nothing is made',
  async (name) => {
    const before = await one('select count(*) from operations');
    const { status, body } = await gateway.create(name);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' });
    expect(body.errors).toEqual([{ field: 'name', code: 'name', message: expect.any(String) }]);
    expect(await one('select count(*) from operations')).toEqual(before);
  },
);

test('a name with half a surrogate pair is a 400, however JSON spells it', async () => {
  expect((await gateway.create('', { raw: '{"name":"a\\ud800"}' })).body.errors[0]?.field).toBe('name');
});

test('an extension that the engine lacks is refused with those it has', async () => {
  const { status, body } = await gateway.create('', { body: { name: 'ext', extensions: ['pgcrypto', 'postgis'] } });
  expect(status).toBe(400);
  expect(body.errors).toEqual([
    expect.objectContaining({ field: 'extensions', message: expect.stringContaining('pgcrypto, uuid-ossp') }),
  ]);
});

test('while the engine is being made an environment is accepted; with none there is no_engine', async () => {
  try {
    await database.query(`update engines set state = 'creating', extensions = '{}'`);
    expect((await gateway.create('early', { body: { name: 'early', extensions: ['postgis'] } })).status).toBe(202);
    await database.query(`update engines set state = 'failed'`);
    expect((await gateway.create('none')).body).toMatchObject({ status: 409, code: 'no_engine' });
  } finally {
    await database.query(`update engines set state = 'ready', extensions = '{pgcrypto,uuid-ossp}'`);
  }
});

test('an unknown project is a 404', async () => {
  expect(
    (await gateway.request('POST', '/v1/projects/nowhere/environments', { body: { name: 'a' } })).body,
  ).toMatchObject({ status: 404, code: 'not_found' });
});

test('B127: the name of a deleted environment, and of one that failed and was undone, is free at once', async () => {
  for (const state of ['deleted', 'failed']) {
    const { body } = await gateway.create('again');
    await database.query('update environments set state = $2 where id = $1', [body.environmentId, state]);
  }
  expect((await gateway.create('again')).status).toBe(202);
});

test('the same key with the same request is the same operation, also when both come at once', async () => {
  const asked = { headers: { 'idempotency-key': 'once' } };
  const answers = await Promise.all(Array.from({ length: 8 }, () => gateway.create('once', asked)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  await one(`select 1 from environments where name = 'once'`);
  const reordered = await gateway.create('', { ...asked, raw: '{ "name" : "once" }' });
  expect(reordered.body.id).toBe(answers[0]!.body.id);
});

test('B121: the key with another body, path or method is a mismatch; another API key has keys of its own', async () => {
  const headers = { 'idempotency-key': 'mine' };
  const first = await gateway.create('keyed', { headers });
  const others = [
    await gateway.create('keyed-2', { headers }),
    await gateway.request('POST', '/v1/projects', { headers, body: { name: 'keyed' } }),
    await gateway.request('DELETE', `/v1/environments/${first.body.environmentId}`, { headers }),
    await gateway.request('POST', `/v1/operations/${first.body.id}/cancel`, { headers }),
  ];
  for (const { body } of others) expect(body).toMatchObject({ status: 409, code: 'idempotency_mismatch' });
  const key = await addKey(database, 'other', 'developer');
  expect((await gateway.create('keyed-3', { headers, key })).status).toBe(202);
  expect((await gateway.get(`/v1/operations/${first.body.id}`)).body.state).toBe('queued');
});

test('a key of a refused request is free for a right one', async () => {
  const headers = { 'idempotency-key': 'retry' };
  expect((await gateway.create('taken', { headers })).status).toBe(409);
  expect((await gateway.create('retry', { headers })).status).toBe(202);
});

test('a project is made once, is found by name and by id, and its name is taken', async () => {
  const headers = { 'idempotency-key': 'project' };
  const made = await gateway.request('POST', '/v1/projects', { body: { name: 'team-a' }, headers });
  expect({ status: made.status, location: made.headers.get('location') }).toEqual({
    status: 201,
    location: '/v1/projects/team-a',
  });
  expect(await gateway.request('POST', '/v1/projects', { body: { name: 'team-a' }, headers })).toMatchObject({
    status: 201,
    body: made.body,
  });
  expect((await gateway.request('POST', '/v1/projects', { body: { name: 'team-a' } })).body).toMatchObject({
    status: 409,
    code: 'project_exists',
  });
  for (const name of ['team-a', made.body.id])
    expect((await gateway.get(`/v1/projects/${name}`)).body).toEqual(made.body);
  const there = await gateway.request('POST', `/v1/projects/${made.body.id}/environments`, { body: { name: 'taken' } });
  expect(there.status).toBe(202);
});

test('fifty creates at once are all accepted', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => gateway.create(`fifty-${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 202));
  const chain = await database.query<{ linked: boolean }>(
    `select bool_and(previous_hash = coalesce(before, sha256(''))) as linked
       from (select previous_hash, lag(hash) over (order by id) as before from audit) a`,
  );
  expect(chain).toEqual([{ linked: true }]);
});

test('B111: no answer to a create, and no line of the log, holds a secret', async () => {
  const { body } = await gateway.create('secret');
  const rows = await database.query<{ sealed: Buffer }>(
    'select unnest(array[password_sealed, verifier_sealed]) as sealed from logins where environment_id = $1',
    [body.environmentId],
  );
  const seen = JSON.stringify(body) + gateway.output;
  for (const { sealed } of rows) expect(seen).not.toContain(sealed.toString('base64'));
  expect(seen).not.toContain('sfk_');
  expect(seen).not.toContain(createHash('sha256').update('sfk_admin').digest('base64'));
  expect(seen).not.toContain(new URL(settings.catalogUrl).password);
});
