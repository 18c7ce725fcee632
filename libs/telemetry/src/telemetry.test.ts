import { expect, test } from '@jest/globals';
import { createLogger, createMetrics } from './index.ts';

function capture(level: 'info' | 'warn' = 'info') {
  const lines: string[] = [];
  const logger = createLogger(
    { process: 'worker', hostId: 'local', level },
    { write: (line: string) => void lines.push(line) },
  );
  return { logger, lines, last: () => JSON.parse(lines.at(-1)!) as Record<string, unknown> };
}

test('a line is one JSON object with a fixed set of fields', () => {
  const { logger, last, lines } = capture();
  logger.info('effect settled', { operationId: 'o1', effect: 'roles', attempt: 2, pass: 'relay' });
  expect(last()).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    process: 'worker',
    pid: process.pid,
    host: 'local',
    operationId: 'o1',
    effect: 'roles',
    attempt: 2,
    pass: 'relay',
    message: 'effect settled',
  });
  expect(lines).toEqual([expect.stringMatching(/^[^\n]+\n$/)]);
});

test('lines below the level are not written', () => {
  const { logger, lines } = capture('warn');
  logger.info('not shown');
  expect(lines).toEqual([]);
});

test('B109: the error of a failed role statement shows neither statement, values nor password', () => {
  const { logger, lines, last } = capture();
  const refused = Object.assign(new Error(`syntax error in CREATE ROLE "a" PASSWORD 'hunter2'`), {
    code: '42601',
    detail: 'Key (password)=(hunter2)',
    query: `create role "a" password 'hunter2'`,
    parameters: ['hunter2'],
    where: 'hunter2',
    internalQuery: 'hunter2',
  });
  logger.error('effect refused', { error: new Error('roles failed', { cause: refused }) });
  expect(lines.join('')).not.toContain('hunter2');
  expect(last()).toMatchObject({ error: { message: 'roles failed', cause: { code: '42601', name: 'Error' } } });
});

test.each([
  ['an address', 'cannot reach amqp://surefoot:hunter2@127.0.0.1:5672/%2F'],
  ['an address with an empty user', 'redis://:hunter2@127.0.0.1'],
  ['a verifier', 'SCRAM-SHA-256$4096:hunter2==$hunter2=:hunter2='],
  ['an API key', 'sfk_hunter2'],
  ['a header', 'Authorization: Bearer hunter2hunter2'],
  ['an escaped password', "ALTER ROLE a PASSWORD E'hunter2\\'hunter2'"],
])('%s in a text is taken out', (_what, text) => {
  const { logger, lines } = capture();
  logger.warn('something happened', { detail: text, list: [{ inner: text }] });
  logger.warn('something happened', { error: new AggregateError([new Error(text)], text) });
  expect(lines.join('')).not.toContain('hunter2');
});

test('fields whose names speak of secrets are taken out; an effect’s token is none', () => {
  const { logger, last } = capture();
  logger.info('looked', {
    token: 'kept',
    adminPassword: 'hunter2',
    password_sealed: Buffer.from('hunter2'),
    nested: { apiKey: 'hunter2', verifiers: { app: 'hunter2' }, authorization: 'hunter2' },
    bytes: Buffer.from('hunter2'),
  });
  expect(last()).toMatchObject({ token: 'kept', adminPassword: '***', bytes: '7 bytes' });
  expect(JSON.stringify(last())).not.toContain('hunter2');
});

test('what refers to itself, or is very deep, is still one line', () => {
  const { logger, last } = capture();
  const loop: Record<string, unknown> = { size: 10n };
  loop['self'] = loop;
  const error = new Error('round and round');
  error.cause = error;
  logger.error('odd', { loop, error });
  expect(last()).toMatchObject({ loop: { size: '10' }, error: { message: 'round and round' } });
});

test('durations are in seconds, gauges are read when asked', async () => {
  const metrics = createMetrics();
  metrics.counter('requests_total', 'requests', ['status'])({ status: '200' });
  metrics.duration('request_seconds', 'time', ['route'])({ route: '/v1/projects' }, 20);
  let depth = 3;
  metrics.gauge('outbox_rows', 'rows', [], async () => [{ labels: {}, value: depth }]);
  depth = 4;
  const text = await metrics.render();
  expect(text).toContain('surefoot_requests_total{status="200"} 1');
  expect(text).toContain('surefoot_request_seconds_sum{route="/v1/projects"} 0.02');
  expect(text).toMatch(/surefoot_outbox_rows\S* 4/);
});
