/**
 * A host or engine that is not the one the catalog means is refused, by name of what differs, and work goes on by itself
 * once the right thing is back (invariants 7 and 11).
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, expect, test } from '@jest/globals';
import type { OperationView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';

const installation = new InstallationUnderTest();
const epoch = join(installation.home, 'host', 'epoch');
const tag = Date.now().toString(36);
const restore: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const undo of restore.splice(0).reverse()) await undo();
});

async function inCatalog(text: string, values: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
  const catalog = await installation.catalog();
  try {
    return (await catalog.query<Record<string, unknown>>(text, [...values])).rows;
  } finally {
    await catalog.end();
  }
}

async function inEngine(text: string, values: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
  const administrator = await installation.administrator('surefoot_control');
  try {
    return (await administrator.query<Record<string, unknown>>(text, [...values])).rows;
  } finally {
    await administrator.end();
  }
}

/** A create is accepted, waits and says why; a case is open; and after the cure it succeeds and the case is closed. */
async function expectRefusedUntilCured(name: string, code: string, says: RegExp): Promise<void> {
  const create = await installation.create(`${name}-${tag}`);
  const waiting = await waitUntil<OperationView>(`${name} says what it waits for`, async () => {
    const operation = await installation.operation(create.id);
    return operation.waitingFor !== undefined && operation.waitingFor !== null && operation;
  });
  expect(waiting.state).toBe('queued');
  expect(waiting.waitingFor).toMatch(says);
  const open = 'select reason from cases where kind = $1 and closed_at is null';
  expect(await inCatalog(open, [code])).toHaveLength(1);
  // Nothing was done meanwhile.
  expect((await installation.operation(create.id)).effects).toEqual([]);
  for (const undo of restore.splice(0).reverse()) await undo();
  const ended = await installation.ended(create.id);
  expect(ended.state).toBe('succeeded');
  expect(await inCatalog(open, [code])).toEqual([]);
  await installation.ended((await installation.remove(ended.environmentId ?? '')).id);
}

test.each([
  ['timeline', '7'],
  ['systemIdentifier', '"1"'],
  ['volumeMark', '"00000000-0000-4000-8000-000000000000"'],
  ['imageDigest', '"sha256:0"'],
  ['configurationDigest', '"0"'],
])('an engine whose %s differs from its pin is refused, naming the field', async (field, value) => {
  const [before] = await inCatalog('select engine_id, generation, pin from engine_generations');
  restore.push(async () => {
    await inCatalog('update engine_generations set pin = $1 where engine_id = $2', [
      before!['pin'],
      before!['engine_id'],
    ]);
  });
  await inCatalog(`update engine_generations set pin = jsonb_set(pin, $1, $2::jsonb)`, [[field], value]);
  await expectRefusedUntilCured(`pin-${field.toLowerCase()}`, 'pin', new RegExp(field));
});

test('a host that has seen more claims than the catalog means that the catalog went back in time', async () => {
  const text = readFileSync(epoch, 'utf8');
  restore.push(() => writeFileSync(epoch, text));
  const { identity, claimNumber } = JSON.parse(text) as { identity: string; claimNumber: number };
  writeFileSync(epoch, JSON.stringify({ identity, claimNumber: claimNumber + 1_000 }));
  await expectRefusedUntilCured('catalog-back', 'age', /the catalog went back in time/);
});

test('a host whose age record is missing is not taken for a new one', async () => {
  restore.push(() => renameSync(`${epoch}.aside`, epoch));
  renameSync(epoch, `${epoch}.aside`);
  await expectRefusedUntilCured('epoch-lost', 'age', /its state was lost/);
});

test('a host with another identity is refused', async () => {
  const text = readFileSync(epoch, 'utf8');
  restore.push(() => writeFileSync(epoch, text));
  writeFileSync(epoch, text.replace(/"identity":"[^"]+"/, '"identity":"00000000-0000-4000-8000-000000000000"'));
  await expectRefusedUntilCured('epoch-other', 'age', /identity/);
});

test('an engine that was set back to an earlier claim is refused', async () => {
  const [before] = await inEngine('select claim_number from surefoot.identity');
  restore.push(async () => {
    await inEngine('update surefoot.identity set claim_number = $1', [before!['claim_number']]);
  });
  await inEngine('update surefoot.identity set claim_number = 0');
  await expectRefusedUntilCured('engine-back', 'age', /engine main .* went back in time/);
});

test('a torn age record is never absence: the host is refused until it can be read', async () => {
  const text = readFileSync(epoch, 'utf8');
  restore.push(() => writeFileSync(epoch, text));
  writeFileSync(epoch, text.slice(0, 20));
  await expectRefusedUntilCured('epoch-torn', 'unreadable_record', /cannot be read/);
});

test('an engine that cannot start is tried ever more rarely, says why and when, and starts once it can', async () => {
  const engine = await waitUntil('the engine is ready', async () => {
    const [row] = await inCatalog(
      `select e.port, p.pin ->> 'containerId' as container
         from engines e join engine_generations p on p.engine_id = e.id and p.generation = e.generation`,
    );
    return row;
  });
  const starts = async (): Promise<number> =>
    Number((await inCatalog(`select count(*) from operations where kind = 'engine.start'`))[0]!['count']);
  const before = await starts();
  const docker = promisify(execFile);
  const squatter = createServer();
  restore.push(async () => {
    await new Promise((closed) => squatter.close(closed));
  });
  const taken = once(squatter, 'listening');
  await docker('docker', ['-H', installation.setting('DOCKER_HOST'), 'stop', String(engine['container'])]);
  squatter.listen(Number(engine['port']), '127.0.0.1');
  await taken;
  const waitingFor = async (): Promise<string | undefined> =>
    (await installation.request<{ items: readonly { waitingFor?: string }[] }>('GET', '/v1/admin/engines')).body
      .items[0]!.waitingFor;
  const says = await waitUntil(
    'the engine says when it is tried again',
    async () => {
      const text = await waitingFor();
      return text !== undefined && text.includes('each of its last starts failed') && text;
    },
    { deadlineMs: 60_000 },
  );
  expect(says).toMatch(/in use|allocated/);
  const at = new Date(/tried again at (\S+)/.exec(says)![1]!);
  expect(at.getTime()).toBeGreaterThan(Date.now() - 5_000);
  // At 2 s a look, all through its pauses: each pause is twice as long as the one before.
  await setTimeout(12_000);
  expect((await starts()) - before).toBeLessThanOrEqual(5);
  for (const undo of restore.splice(0).reverse()) await undo();
  await waitUntil('the engine runs and takes work', async () => (await waitingFor()) === undefined, {
    deadlineMs: 90_000,
  });
}, 180_000);
