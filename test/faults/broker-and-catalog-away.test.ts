/**
 * Broker and catalog go away while environments are being made: everything that was accepted is carried out. What is
 * asked while the catalog is away is refused with a 503 that says to try again, and is repeated by its idempotency key.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import type { OperationView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const docker = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
const tag = Date.now().toString(36);
const made: string[] = [];

async function container(service: 'broker' | 'catalog'): Promise<string> {
  const filters = [
    `label=com.docker.compose.service=${service}`,
    `label=surefoot.installation=${installation.setting('SUREFOOT_INSTALLATION')}`,
  ];
  const { stdout } = await run('docker', ['ps', '-aq', ...filters.flatMap((filter) => ['--filter', filter])], {
    env: docker,
  });
  return stdout.trim();
}

/** As a client does that was told to try again: the same key, so that it is done once. */
async function createPatiently(name: string): Promise<OperationView> {
  const key = randomUUID();
  return waitUntil(
    `the create of ${name} is accepted`,
    async () => {
      const answer = await installation.request<OperationView>('POST', '/v1/projects/default/environments', {
        body: { name },
        headers: { 'idempotency-key': key },
      });
      if (answer.status === 503) return undefined;
      expect(answer.status).toBe(202);
      return answer.body;
    },
    { deadlineMs: 90_000, intervalMs: 200 },
  );
}

async function expectAllSucceed(operations: readonly OperationView[]): Promise<void> {
  const ended = await Promise.all(operations.map(({ id }) => installation.ended(id, 180_000)));
  expect(ended.filter(({ state }) => state !== 'succeeded')).toEqual([]);
  made.push(...ended.map(({ environmentId }) => environmentId ?? ''));
}

afterAll(async () => {
  const operations = await Promise.all(made.map((id) => installation.remove(id)));
  await Promise.all(operations.map(({ id }) => installation.ended(id, 180_000)));
}, 200_000);

test('creates that are asked for while the broker is stopped for 30 seconds are accepted at once, and all finish', async () => {
  const broker = await container('broker');
  const before = await Promise.all([0, 1, 2].map((index) => installation.create(`broker-${tag}-${index}`)));
  await run('docker', ['stop', '-t', '20', broker], { env: docker });
  const stoppedAt = Date.now();
  const during = await Promise.all([3, 4, 5, 6, 7].map((index) => installation.create(`broker-${tag}-${index}`)));
  // The half minute is what is tested: jobs are found by looking while no message can come.
  await setTimeout(Math.max(0, stoppedAt + 30_000 - Date.now()));
  await run('docker', ['start', broker], { env: docker });
  const after = await installation.create(`broker-${tag}-8`);
  await expectAllSucceed([...before, ...during, after]);
  // And the queue is consumed again.
  const catalog = await installation.catalog();
  await waitUntil('every outbox row is published', async () => {
    const { rows } = await catalog.query<{ open: number }>(
      'select count(*)::integer as open from outbox where published_at is null',
    );
    return rows[0]!.open === 0;
  });
  await catalog.end();
}, 240_000);

test.each(['restart', 'kill'] as const)(
  'B094: creates finish when the catalog is ended by %s in the middle of them',
  async (how) => {
    const catalog = await container('catalog');
    const before = await Promise.all([0, 1, 2].map((index) => installation.create(`catalog-${how}-${tag}-${index}`)));
    if (how === 'restart') await run('docker', ['restart', '-t', '20', catalog], { env: docker });
    else {
      await run('docker', ['kill', '--signal', 'KILL', catalog], { env: docker });
      await run('docker', ['start', catalog], { env: docker });
    }
    const during = await Promise.all([3, 4].map((index) => createPatiently(`catalog-${how}-${tag}-${index}`)));
    await expectAllSucceed([...before, ...during]);
  },
  240_000,
);

test('B092: a request is answered in five seconds while the catalog is paused, and is done once afterwards', async () => {
  const catalog = await container('catalog');
  await run('docker', ['pause', catalog], { env: docker });
  const askedAt = Date.now();
  const name = `paused-${tag}`;
  const key = randomUUID();
  const answer = await installation.request('POST', '/v1/projects/default/environments', {
    body: { name },
    headers: { 'idempotency-key': key },
  });
  const tookMs = Date.now() - askedAt;
  await run('docker', ['unpause', catalog], { env: docker });
  expect(answer.status).toBe(503);
  expect(tookMs).toBeLessThan(6_000);
  const operation = await waitUntil('the same request is accepted', async () => {
    const again = await installation.request<OperationView>('POST', '/v1/projects/default/environments', {
      body: { name },
      headers: { 'idempotency-key': key },
    });
    return again.status === 202 && again.body;
  });
  await expectAllSucceed([operation]);
  const listed = await installation.request<{ items: unknown[] }>(
    'GET',
    `/v1/projects/default/environments?name=${name}`,
  );
  expect(listed.body.items).toHaveLength(1);
}, 120_000);
