import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import { passesOf, ReconcilerWorld } from './reconciler-world.ts';

let world: ReconcilerWorld;

beforeEach(async () => {
  world = await ReconcilerWorld.make();
});

afterEach(() => world.close());

async function allMarked(): Promise<void> {
  await waitUntil('every row is marked', async () => (await world.open()) === 0);
}

test('a committed row is published and marked; a row that was rolled back never is', async () => {
  await world.start();
  const client = await world.client();
  await client.query(`begin; ${world.insert('undone')}; rollback`);
  const before = performance.now();
  await client.query(world.insert('done'));
  expect(await world.received(['done'])).toEqual(['done']);
  // A second would mean that the notice did not come, and the timer found it.
  expect(performance.now() - before).toBeLessThan(900);
  await allMarked();
  await client.end();
});

test('B094: a row with a lower number that commits later is not skipped', async () => {
  await world.start();
  const [slow, fast] = [await world.client(), await world.client()];
  await slow.query(`begin; ${world.insert('slow')}`);
  await fast.query(world.insert('fast'));
  expect(await world.received(['fast'])).toEqual(['fast']);
  await allMarked();
  await slow.query('commit');
  expect(await world.received(['slow'])).toEqual(['slow']);
  await Promise.all([slow.end(), fast.end()]);
});

test('several relays and many writers: each committed row comes once, none is lost', async () => {
  await Promise.all([world.start(), world.start()]);
  const writers = await Promise.all(Array.from({ length: 8 }, () => world.client()));
  const committed: string[] = [];
  await Promise.all(
    writers.map(async (client, writer) => {
      for (let turn = 0; turn < 50; turn += 1) {
        const message = `${writer}-${turn}`;
        await client.query(`begin; ${world.insert(message)}`);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
        if (turn % 5 === 0) await client.query('rollback');
        else {
          await client.query('commit');
          committed.push(message);
        }
      }
      await client.end();
    }),
  );
  const received = await world.received(committed);
  expect([...received].sort()).toEqual([...committed].sort());
  await allMarked();
});

test('a crash between publishing and marking gives a duplicate, never a loss', async () => {
  const [blocker, writer] = [await world.client(), await world.client()];
  await writer.query(world.insert('twice'));
  // Rows can be selected and locked, not updated: the relay publishes, and cannot mark.
  await blocker.query('begin; lock table outbox in share mode');
  const first = await world.start();
  await waitUntil('published', async () => (await world.broker.messages(world.queue)) === 1);
  await first.end('SIGKILL');
  await blocker.query('rollback');
  expect(await world.open()).toBe(1);
  await world.start();
  await waitUntil('published again', async () => (await world.broker.messages(world.queue)) === 2);
  await allMarked();
  await Promise.all([blocker.end(), writer.end()]);
});

test('with the broker away rows stay, that is logged once, and they are published when it is back', async () => {
  const { said } = await world.start();
  await world.broker.proxy.refuse();
  world.broker.proxy.cut();
  const messages = Array.from({ length: 250 }, (_, index) => `m${index}`);
  for (const message of messages) await world.database.query(world.insert(message));
  await waitUntil('noticed', () => said.includes('pass fails, it is tried again'));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(said.filter((line) => line === 'pass fails, it is tried again')).toHaveLength(1);
  expect(await world.open()).toBe(250);
  await world.broker.proxy.accept();
  expect(new Set(await world.received(messages)).size).toBe(250);
  await allMarked();
  expect(said).toContain('pass works again');
});

test('with the catalog away it keeps trying, and hears notices again when it is back', async () => {
  const { said } = await world.start();
  for (let restarts = 0; restarts < 2; restarts += 1) {
    await world.catalogProxy.refuse();
    world.catalogProxy.cut();
    await world.database.query(world.insert(`during ${restarts}`));
    await waitUntil('noticed', () => said.filter((line) => line.startsWith('pass fails')).length > restarts);
    await world.catalogProxy.accept();
    await world.received([`during ${restarts}`]);
    await waitUntil('recovered', () => said.filter((line) => line === 'pass works again').length > restarts);
  }
  await waitUntil('it listens again', async () => {
    const before = performance.now();
    await world.database.query(world.insert('after'));
    await world.received(['after']);
    return performance.now() - before < 200;
  });
  await allMarked();
  expect(said).toContain('pass works again');
});

test('a row for a queue that is not there delays no other, and is published once the queue is there', async () => {
  const { said } = await world.start();
  const missing = `${world.queue}.later`;
  await world.database.query(world.insert('early', missing));
  await waitUntil('noticed', () => said.includes('outbox rows wait for a queue that takes them'));
  const before = performance.now();
  await world.database.query(world.insert('other'));
  await world.received(['other']);
  expect(performance.now() - before).toBeLessThan(900);
  expect(await world.open()).toBe(1);
  await world.broker.declareQueue(missing, { 'x-queue-type': 'quorum' });
  try {
    expect(await world.broker.take(missing)).toContain('early');
    await allMarked();
  } finally {
    await world.broker.deleteQueue(missing);
  }
  expect(said).toContain('no outbox row waits for a queue any more');
});

test('it shows when its passes ended, and leaves nothing behind when it is asked to stop', async () => {
  const reconciler = await world.start();
  const [first] = await waitUntil('a pass ended', () => existsSync(reconciler.passesFile) && passesOf(reconciler));
  expect(first).toMatchObject({ pass: 'relay', outcome: 'done' });
  await waitUntil('another one ended', () => passesOf(reconciler)[0]!.endedAt > first!.endedAt);
  expect(await reconciler.end('SIGTERM')).toBe(0);
  expect([existsSync(reconciler.readyFile), existsSync(reconciler.passesFile)]).toEqual([false, false]);
});

test('asked to stop while broker and catalog are silent, it still ends', async () => {
  const reconciler = await world.start();
  world.broker.proxy.freeze();
  world.catalogProxy.freeze();
  const before = performance.now();
  expect(await reconciler.end('SIGTERM')).toBe(0);
  expect(performance.now() - before).toBeLessThan(20_000);
  world.catalogProxy.thaw();
});
