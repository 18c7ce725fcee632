/** Logs as the API shows them, from a worker that says what a test wants. */
import { randomUUID } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type LogAnswer, type LogRequest, LogServer } from '#broker';
import { LOG_STREAMS_PER_KEY_MAX, type LogLine } from '#kernel';
import { waitUntil } from '#testing';
import { type OwnDatabase, settings } from './catalog-server.ts';
import { addKey, GatewayUnderTest, seededDatabase } from './gateway-world.ts';

const HOST = `test-${randomUUID().slice(0, 8)}`;
const CONTAINER = '0123456789abcdef'.repeat(4);
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

interface Asked {
  readonly request: LogRequest;
  answer(message: LogAnswer): Promise<boolean>;
}

/** As the worker would be asked; each answers by itself. */
const asked: Asked[] = [];
let script: (asked: Asked) => void;

let database: OwnDatabase;
let gateway: GatewayUnderTest;
let worker: LogServer;
let environment: string;
let logs: string;

beforeAll(async () => {
  database = await seededDatabase();
  await database.query('insert into hosts (id, identity) values ($1, $2)', [HOST, randomUUID()]);
  await database.query('update engines set host_id = $1', [HOST]);
  gateway = await (await GatewayUnderTest.start(database.url)).ready();
  environment = (await gateway.create('app')).body.environmentId;
  logs = `/v1/environments/${environment}/services`;
  const [api, worked] = [randomUUID(), randomUUID()];
  await database.query(
    `insert into services (id, environment_id, name, image, ordinal) values ($1, $3, 'api', 'x', 0), ($2, $3, 'worker', 'x', 1)`,
    [api, worked, environment],
  );
  await database.query(`update environments set networks = 1, identities = $2 where id = $1`, [
    environment,
    { services: { [api]: { containerId: CONTAINER, imageId: 'sha256:x', ports: {} } } },
  ]);
  worker = serving();
});
afterAll(async () => {
  await worker.close();
  await gateway.stop();
  await database.drop();
});
beforeEach(() => {
  asked.splice(0);
  script = (one) => void one.answer({ seq: 0, lines: [] });
});

function serving(): LogServer {
  const server = new LogServer({
    url: settings.brokerUrl,
    hostId: HOST,
    logger: QUIET,
    onRequest: (request, answer) => {
      const one = { request, answer };
      asked.push(one);
      script(one);
    },
  });
  server.start();
  return server;
}

function line(text: string): LogLine {
  return { at: '2026-01-01T00:00:00.000000001Z', stream: 'stdout', text };
}

/** One answer after the other. */
function says(...answers: readonly LogAnswer[]): (one: Asked) => void {
  return (one) => {
    void (async () => {
      for (const answer of answers) await one.answer(answer);
    })();
  };
}

async function isServed(): Promise<void> {
  script = says({ seq: 0, end: 'complete', truncated: false });
  await waitUntil('logs are served', async () => (await gateway.get(`${logs}/api/logs`)).status === 200);
  asked.splice(0);
}

/** An event stream, read as far as a test wants. */
class Stream {
  readonly response: IncomingMessage;
  text = '';
  ended = false;

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.on('end', () => (this.ended = true));
    response.on('error', () => undefined);
  }

  static async open(path: string, { headers = {}, reads = true } = {}): Promise<Stream> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const call = httpRequest(`${gateway.url}${path}`, {
        headers: { authorization: 'Bearer sfk_admin', ...headers },
        agent: false,
      });
      call.once('response', resolve);
      call.once('error', reject);
      call.end();
    });
    const stream = new Stream(response);
    if (reads) stream.read();
    return stream;
  }

  read(): void {
    this.response.setEncoding('utf8').on('data', (text: string) => (this.text += text));
  }

  get events(): readonly (readonly [string, unknown])[] {
    return [...this.text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(
      ([, name = '', data = '']) => [name, JSON.parse(data)] as const,
    );
  }
}

describe('an answer', () => {
  test('holds the lines that the worker tells, and the worker is asked for what was asked for', async () => {
    await isServed();
    const lines = [line('one'), { ...line('\u001b[31mtwo\u0000\n'), stream: 'stderr', cut: true }] as const;
    script = says({ seq: 0, lines: [] }, { seq: 0, lines }, { seq: 2, end: 'complete', truncated: true });
    const { status, text } = await gateway.get(`${logs}/api/logs`);
    expect([status, JSON.parse(text)]).toEqual([200, { items: lines, truncated: true }]);
    await gateway.get(`${logs}/api/logs?tail=0&since=2026-01-01T00:00:00.000000002Z&follow=false`);
    const id = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(asked.map(({ request }) => request)).toEqual([
      { id, containerId: CONTAINER, tail: 100, follow: false },
      { id, containerId: CONTAINER, tail: 0, since: '2026-01-01T00:00:00.000000002Z', follow: false },
    ]);
  });

  test.each([
    ['daemon_unreachable', 'daemon_unreachable'],
    ['unreadable', 'daemon_unreachable'],
    ['host_unavailable', 'host_unavailable'],
  ] as const)('that ends early with %s is none, but a %s', async (end, code) => {
    script = says({ seq: 0, lines: [] }, { seq: 0, lines: [line('half')] }, { seq: 1, end, truncated: false });
    expect((await gateway.get(`${logs}/api/logs`)).body).toMatchObject({ status: 503, code });
  });

  test.each([
    ['not_found', 404],
    ['daemon_unreachable', 503],
    ['rate_limited', 429],
    ['host_unavailable', 503],
  ] as const)('is refused as the worker refuses it, with %s, also as a stream', async (code, status) => {
    script = says({ seq: 0, refusal: { code, message: 'because' } });
    const refused = { status, body: { code, detail: 'because' } };
    expect(await gateway.get(`${logs}/api/logs`)).toMatchObject(refused);
    const stream = await gateway.get(`${logs}/api/logs?follow=true`);
    expect(stream).toMatchObject(refused);
    expect(stream.headers.get('content-type')).toContain('application/problem+json');
  });
});

describe('an event stream', () => {
  test('tells lines, what is missing and the end, and a sign of life in between', async () => {
    script = says(
      { seq: 0, lines: [] },
      { seq: 0, lines: [line('one'), line('two\r\nevent: end')] },
      { seq: 2, lines: [] },
      { seq: 7, lines: [line('eight')] },
      { seq: 8, end: 'stopped', truncated: false },
    );
    const stream = await Stream.open(`${logs}/api/logs?follow=true&tail=5`);
    await waitUntil('it has ended', () => stream.ended);
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    expect(stream.events).toEqual([
      ['line', line('one')],
      ['line', line('two\r\nevent: end')],
      ['gap', { missing: 5 }],
      ['line', line('eight')],
      ['end', { reason: 'stopped', truncated: false }],
    ]);
    expect(stream.text.match(/^:$/gm)).toHaveLength(2);
    expect(asked[0]?.request).toMatchObject({ tail: 5, follow: true });
  });

  test('is what a client gets who asks for one by its type; it is followed unless told otherwise', async () => {
    script = says({ seq: 0, lines: [line('one')] }, { seq: 1, end: 'complete', truncated: true });
    for (const query of ['', '?follow=false']) {
      const stream = await Stream.open(`${logs}/api/logs${query}`, { headers: { accept: 'text/event-stream' } });
      await waitUntil('it has ended', () => stream.ended);
      expect(stream.events.at(-1)).toEqual(['end', { reason: 'complete', truncated: true }]);
    }
    expect(asked.map(({ request }) => request.follow)).toEqual([true, false]);
  });

  test('begins at once, and a client who leaves is noticed by the worker’s next word', async () => {
    const stream = await Stream.open(`${logs}/api/logs?follow=true`);
    await waitUntil('the first word', () => stream.text === ':\n\n');
    expect(await asked[0]!.answer({ seq: 0, lines: [] })).toBe(true);
    stream.response.destroy();
    await waitUntil('nobody reads', async () => !(await asked[0]!.answer({ seq: 0, lines: [] })));
  });

  test('of a client who does not read holds up nobody, and tells how much is missing once it reads', async () => {
    const stream = await Stream.open(`${logs}/api/logs?follow=true`, { reads: false });
    const text = 'x'.repeat(60_000);
    for (let seq = 0; seq < 500; seq += 1) expect(await asked[0]!.answer({ seq, lines: [line(text)] })).toBe(true);
    await asked[0]!.answer({ seq: 500, end: 'stopped', truncated: false });
    stream.read();
    await waitUntil('it has ended', () => stream.ended);
    const lines = stream.events.filter(([name]) => name === 'line').length;
    const missing = stream.events.flatMap(([name, data]) =>
      name === 'gap' ? [(data as { missing: number }).missing] : [],
    );
    expect(missing.length).toBeGreaterThan(0);
    expect(lines + missing.reduce((sum, more) => sum + more, 0)).toBe(500);
  });
});

test('a key that reads as many logs as one may is refused one more, others are not, and an end makes room', async () => {
  const key = await addKey(database, 'many', 'developer');
  const headers = { authorization: `Bearer ${key}` };
  const open = await Promise.all(
    Array.from({ length: LOG_STREAMS_PER_KEY_MAX }, () => Stream.open(`${logs}/api/logs?follow=true`, { headers })),
  );
  expect(open.map(({ response }) => response.statusCode)).toEqual(open.map(() => 200));
  const before = asked.length;
  for (const query of ['', '?follow=true'])
    expect((await gateway.get(`${logs}/api/logs${query}`, { key })).body).toMatchObject({
      status: 429,
      code: 'rate_limited',
    });
  expect(asked).toHaveLength(before);
  script = says({ seq: 0, end: 'complete', truncated: false });
  expect((await gateway.get(`${logs}/api/logs`)).status).toBe(200);
  open[0]!.response.destroy();
  // That it has left is noticed by the worker's next word.
  for (const one of asked.slice(0, before)) void one.answer({ seq: 0, lines: [] });
  await waitUntil('there is room', async () => (await gateway.get(`${logs}/api/logs`, { key })).status === 200);
  // What was refused, or had an end by itself, takes no place.
  for (let n = 0; n < LOG_STREAMS_PER_KEY_MAX; n += 1) {
    script = says({ seq: 0, refusal: { code: 'not_found', message: 'because' } });
    expect((await gateway.get(`${logs}/api/logs?follow=true`, { key })).status).toBe(404);
    script = says({ seq: 0, lines: [] }, { seq: 0, end: 'stopped', truncated: false });
    expect([n, (await gateway.get(`${logs}/api/logs?follow=true`, { key })).status]).toEqual([n, 200]);
  }
  for (const { response } of open) response.destroy();
});

describe('what is refused before anybody is asked', () => {
  test.each([
    ['tail=10001', 'tail'],
    ['tail=-1', 'tail'],
    ['tail=all', 'tail'],
    ['since=yesterday', 'since'],
    ['since=2026-01-01', 'since'],
    ['follow=yes', 'follow'],
    ['lines=5', 'lines'],
  ])('%s', async (query, field) => {
    const { status, body } = await gateway.get(`${logs}/api/logs?${query}`);
    expect([status, body.code, body.errors.map((fault) => fault.field)]).toEqual([400, 'invalid_request', [field]]);
    expect(asked).toEqual([]);
  });

  test('a service that is not there, or has no container, with what there is', async () => {
    const absent = await gateway.get(`${logs}/web/logs`);
    expect(absent.body).toMatchObject({
      status: 404,
      code: 'not_found',
      detail: expect.stringContaining('it has api, worker'),
    });
    const waiting = await gateway.get(`${logs}/worker/logs`);
    expect(waiting.body).toMatchObject({ status: 409, code: 'environment_not_ready' });
    expect(asked).toEqual([]);
  });

  test('a key that may only look, and one of another project', async () => {
    const project = (await gateway.request('POST', '/v1/projects', { body: { name: 'other' } })).body.id;
    const viewer = await addKey(database, 'viewer', 'viewer');
    const stranger = await addKey(database, 'stranger', 'admin', [project]);
    for (const query of ['', '?follow=true']) {
      expect((await gateway.get(`${logs}/api/logs${query}`, { key: viewer })).status).toBe(403);
      expect((await gateway.get(`${logs}/api/logs${query}`, { key: stranger })).status).toBe(404);
    }
    script = says({ seq: 0, end: 'complete', truncated: false });
    const developer = await addKey(database, 'developer', 'developer');
    expect((await gateway.get(`${logs}/api/logs`, { key: developer })).status).toBe(200);
  });
});

test('while no worker of the host runs, the host is unavailable; when one does again, logs are read', async () => {
  await worker.close();
  const { status, body } = await gateway.get(`${logs}/api/logs`);
  expect([status, body.code]).toEqual([503, 'host_unavailable']);
  worker = serving();
  await isServed();
});

test('a gateway that stops tells those who follow, and does not wait for them', async () => {
  const stopping = await (await GatewayUnderTest.start(database.url)).ready();
  const here = gateway;
  gateway = stopping;
  const stream = await Stream.open(`${logs}/api/logs?follow=true`);
  gateway = here;
  const before = performance.now();
  expect(await stopping.stop()).toBe(0);
  expect(performance.now() - before).toBeLessThan(4_000);
  expect(stream.events.at(-1)).toEqual(['end', { reason: 'gateway_stopping', truncated: false }]);
});
