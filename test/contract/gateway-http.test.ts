import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { OwnDatabase } from './catalog-server.ts';
import { type Asked, GatewayUnderTest, seededDatabase } from './gateway-world.ts';

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

const ENVIRONMENTS = '/v1/projects/default/environments';
const NOBODY = '00000000-0000-4000-8000-000000000000';

test.each<[string, string, string, Asked, number, string]>([
  ['an unknown route', 'GET', '/v1/nothing', {}, 404, 'not_found'],
  ['the root', 'GET', '/', {}, 404, 'not_found'],
  ['a slash too much', 'GET', '/v1/projects/', {}, 404, 'not_found'],
  ['another method', 'PUT', ENVIRONMENTS, {}, 405, 'method_not_allowed'],
  ['another method, with a body', 'DELETE', '/v1/projects', { body: {} }, 405, 'method_not_allowed'],
  [
    'a form',
    'POST',
    ENVIRONMENTS,
    { raw: 'name=a', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    415,
    'unsupported_media_type',
  ],
  [
    'text',
    'POST',
    ENVIRONMENTS,
    { raw: '{"name":"a"}', headers: { 'content-type': 'text/plain' } },
    415,
    'unsupported_media_type',
  ],
  ['half a body', 'POST', ENVIRONMENTS, { raw: '{"name":' }, 400, 'invalid_json'],
  [
    'bytes that are not UTF-8',
    'POST',
    ENVIRONMENTS,
    { raw: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) },
    400,
    'invalid_json',
  ],
  ['a body that is a list', 'POST', ENVIRONMENTS, { body: [] }, 400, 'invalid_request'],
  ['no body', 'POST', ENVIRONMENTS, {}, 400, 'invalid_request'],
  ['an empty body', 'POST', ENVIRONMENTS, { raw: '' }, 400, 'invalid_request'],
  [
    'a body that is too large',
    'POST',
    ENVIRONMENTS,
    { raw: JSON.stringify({ name: 'a'.repeat(300_000) }) },
    413,
    'body_too_large',
  ],
  [
    'a body nested a thousand times',
    'POST',
    ENVIRONMENTS,
    { raw: '['.repeat(1_000) + ']'.repeat(1_000) },
    400,
    'invalid_request',
  ],
  ['a broken percent sign', 'GET', '/v1/environments/%zz', {}, 400, 'invalid_request'],
  ['NUL in an address', 'GET', '/v1/projects/%00/environments', {}, 404, 'not_found'],
  ['an address without end', 'GET', `/v1/projects/${'x'.repeat(5_000)}`, {}, 404, 'not_found'],
  ['NUL in a filter', 'GET', `${ENVIRONMENTS}?name=%00`, {}, 400, 'invalid_request'],
  ['a filter that is none', 'GET', `${ENVIRONMENTS}?colour=red`, {}, 400, 'invalid_request'],
  ['a filter given twice', 'GET', `${ENVIRONMENTS}?name=a&name=b`, {}, 400, 'invalid_request'],
  ['a limit of none', 'GET', `${ENVIRONMENTS}?limit=0`, {}, 400, 'invalid_request'],
  ['a limit that is no number', 'GET', '/v1/operations?limit=ten', {}, 400, 'invalid_request'],
  ['a state that is none', 'GET', '/v1/operations?state=done', {}, 400, 'invalid_request'],
  ['an environment that is no id', 'GET', "/v1/operations?environment=' or 1=1", {}, 400, 'invalid_request'],
  ['a cursor of somebody else', 'GET', '/v1/operations?cursor=abc', {}, 400, 'invalid_request'],
  [
    'a body where none is taken',
    'POST',
    `/v1/operations/${NOBODY}/cancel`,
    { body: { reason: 'x' } },
    400,
    'invalid_request',
  ],
  [
    'a delete with conditions',
    'DELETE',
    `/v1/environments/${NOBODY}`,
    { body: { keep: true } },
    400,
    'invalid_request',
  ],
  ['an id that is none', 'GET', "/v1/operations/'--", {}, 404, 'not_found'],
  [
    'an idempotency key with a space',
    'POST',
    ENVIRONMENTS,
    { body: { name: 'a' }, headers: { 'idempotency-key': 'a b' } },
    400,
    'invalid_request',
  ],
  ['a field that is not built yet', 'POST', ENVIRONMENTS, { body: { name: 'a', ttl: '1h' } }, 400, 'not_supported'],
])('%s is one problem document: %s %s', async (_what, method, path, asked, status, code) => {
  const answer = await gateway.request(method, path, asked);
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(answer.body).toEqual({
    type: `urn:surefoot:problem:${code}`,
    title: expect.any(String),
    status,
    code,
    detail: expect.any(String),
    errors: expect.any(Array),
  });
  expect(answer.text).not.toMatch(/Exception|stack|node_modules|select /);
});

test('a wrong method is told which are right', async () => {
  const answer = await gateway.request('PUT', ENVIRONMENTS);
  expect(answer.headers.get('allow')).toBe('GET, HEAD, POST');
});

test('all faults of a body come at once', async () => {
  const { body } = await gateway.request('POST', ENVIRONMENTS, {
    body: { name: 'a/b', connectionLimit: 0, profile: 'x', extra: 1, more: 2, ttl: 3 },
  });
  expect(body.errors.map(({ field }) => field).sort()).toEqual([
    'connectionLimit',
    'extra',
    'more',
    'name',
    'profile',
    'ttl',
  ]);
});

test.each([
  ['PATCH', `/v1/environments/${NOBODY}`],
  ...['rotate', 'clone', 'suspend', 'resume', 'backup', 'restore', 'retry'].map((verb) => [
    'POST',
    `/v1/environments/${NOBODY}/${verb}`,
  ]),
  ...['keys', 'profiles', 'webhooks'].flatMap((what) => [
    ['GET', `/v1/admin/${what}`],
    ['POST', `/v1/admin/${what}`],
  ]),
  ...['hosts', 'audit', 'drift', 'orphans', 'reconciler'].map((what) => ['GET', `/v1/admin/${what}`]),
  ...['migrate', 'drain', 'backup', 'rules/adopt', 'rules/restore'].map((verb) => [
    'POST',
    `/v1/admin/engines/${NOBODY}/${verb}`,
  ]),
  ['GET', `/v1/admin/engines/${NOBODY}/rules`],
  ['GET', `/v1/admin/engines/${NOBODY}/ca`],
  ['POST', '/v1/admin/engines'],
  ['POST', '/v1/admin/events/replay'],
  ['POST', `/v1/admin/cases/${NOBODY}/decisions`],
  ['POST', '/v1/admin/reconciler/passes/relay'],
  ['POST', '/graphql'],
] as [string, string][])('%s %s is not built yet, and says so to those who have a key', async (method, path) => {
  const asked = method === 'GET' ? {} : { body: {} };
  expect(await gateway.request(method, path, asked)).toMatchObject({ status: 501, body: { code: 'not_supported' } });
  expect((await gateway.request(method, path, { ...asked, key: undefined })).status).toBe(401);
});

test('every answer carries the headers that keep a browser from doing anything with it', async () => {
  for (const path of ['/v1/projects', '/v1/nothing', '/health/live', '/v1/environments/%zz']) {
    const { headers } = await gateway.get(path);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
  }
});

test('pages follow each other, oldest first, without a gap and without a repetition', async () => {
  for (let n = 0; n < 7; n += 1) await gateway.create(`page-${n}`);
  const seen: string[] = [];
  let cursor = '';
  do {
    const { body } = await gateway.get(`${ENVIRONMENTS}?limit=3${cursor}`);
    seen.push(...body.items.map(({ name }) => name));
    cursor = body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(body.nextCursor)}`;
  } while (cursor !== '');
  expect(seen).toEqual(Array.from({ length: 7 }, (_, n) => `page-${n}`));
});

test('rows of one and the same time are paged by id', async () => {
  await database.query(`update operations set created_at = '2026-01-01 00:00:00.123456+00'`);
  const seen = new Set<string>();
  let cursor = '';
  do {
    const { body } = await gateway.get(`/v1/operations?limit=2${cursor}`);
    for (const { id } of body.items) seen.add(id);
    cursor = body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(body.nextCursor)}`;
  } while (cursor !== '');
  expect(seen.size).toBe(7);
});

test('projects are paged by name', async () => {
  for (const name of ['alpha', 'beta']) await gateway.request('POST', '/v1/projects', { body: { name } });
  const first = (await gateway.get('/v1/projects?limit=2')).body;
  const second = (await gateway.get(`/v1/projects?limit=2&cursor=${first.nextCursor}`)).body;
  expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(['alpha', 'beta', 'default']);
  expect(second.nextCursor).toBeNull();
});

test('operations are found by environment, state and kind', async () => {
  const { body } = await gateway.create('filters');
  await gateway.request('DELETE', `/v1/environments/${body.environmentId}`);
  const kinds = async (query: string) =>
    (await gateway.get(`/v1/operations?environment=${body.environmentId}${query}`)).body.items.map(({ kind }) => kind);
  expect(await kinds('')).toEqual(['environment.delete', 'environment.create']);
  expect(await kinds('&state=cancelled')).toEqual(['environment.create']);
  expect(await kinds('&kind=environment.delete&state=queued')).toEqual(['environment.delete']);
});

test('metrics tell what is open and how requests went, by route and not by address', async () => {
  await gateway.get('/v1/environments/some-id-that-is-nowhere-else');
  const { text } = await gateway.get('/metrics', { key: undefined });
  expect(text).toMatch(/surefoot_operations_open\{state="queued",kind="environment.create"\} \d+/);
  expect(text).toMatch(/surefoot_outbox_unpublished \d+/);
  expect(text).toMatch(/surefoot_environments\{state="provisioning"\} \d+/);
  expect(text).toMatch(/surefoot_environments\{state="blocked"\} 0/);
  expect(text).not.toContain('state="deleted"');
  expect(text).toContain('surefoot_catalog_up 1');
  expect(text).toContain('route="/v1/environments/:id",status="404"');
  expect(text).not.toContain('nowhere-else');
});

test('a client that sends nothing, or garbage, does not hold the gateway up', async () => {
  const { hostname, port } = new URL(gateway.url);
  const silent = connect(Number(port), hostname);
  const garbage = connect(Number(port), hostname);
  await once(garbage, 'connect');
  garbage.write('\x16\x03\x01 this is not HTTP\r\n\r\n');
  const [answer] = (await once(garbage, 'data')) as [Buffer];
  expect(answer.toString()).toContain('400');
  expect((await gateway.get('/health/live')).status).toBe(200);
  silent.destroy();
  garbage.destroy();
});

test('SIGTERM ends it at once, streams included, with exit code 0', async () => {
  const own = await (await GatewayUnderTest.start(database.url)).ready();
  const { body } = await own.create('stopping');
  const stream = await fetch(`${own.url}/v1/operations/${body.id}/events`, {
    headers: { authorization: 'Bearer sfk_admin' },
  });
  const reader = stream.body!.getReader();
  await reader.read();
  const began = performance.now();
  expect(await own.stop()).toBe(0);
  expect(performance.now() - began).toBeLessThan(4_000);
  while (!(await reader.read()).done);
});
