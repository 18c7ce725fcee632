import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { BrokerUnavailable, Publisher } from '#broker';
import { waitUntil } from '#testing';
import { BrokerWorld } from './broker-world.ts';

const DEADLINE_MS = 1_500;

let world: BrokerWorld;
let publisher: Publisher;

beforeEach(async () => {
  world = await BrokerWorld.make();
  publisher = new Publisher({ url: world.url, name: 'test publisher', deadlineMs: DEADLINE_MS });
});

afterEach(async () => {
  await publisher.close();
  await world.close();
});

function toQueue(routingKey = world.topology.queue) {
  return { exchange: '', routingKey, body: { version: 1, jobId: '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11' } };
}

test('a batch is published when all of it is confirmed; what no queue takes is said', async () => {
  const outcomes = await publisher.publish([toQueue(), toQueue(`${world.topology.queue}.nowhere`), toQueue()]);
  expect(outcomes).toEqual(['confirmed', 'unroutable', 'confirmed']);
  expect(await world.messages()).toBe(2);
});

test('an exchange that is not there fails the batch, and the next one is published', async () => {
  await expect(publisher.publish([{ ...toQueue(), exchange: 'nowhere' }])).rejects.toThrow(/404|NOT_FOUND|closed/);
  expect(await publisher.publish([toQueue()])).toEqual(['confirmed']);
});

test('a publisher whose connection was cut fails at most what it had in hand, and connects again by itself', async () => {
  await publisher.connect();
  world.proxy.cut();
  await waitUntil('published again', () => publisher.publish([toQueue()]).then(Boolean, () => false));
  expect(await world.messages()).toBe(1);
});

test('a broker that cannot be reached is said at once', async () => {
  await world.proxy.refuse();
  await expect(publisher.publish([toQueue()])).rejects.toThrow(BrokerUnavailable);
  await world.proxy.accept();
  expect(await publisher.publish([toQueue()])).toEqual(['confirmed']);
});

test('a broker that is silent is given up at the deadline', async () => {
  await publisher.connect();
  world.proxy.freeze();
  const before = performance.now();
  await expect(publisher.publish([toQueue()])).rejects.toThrow(/no answer in 1500 ms/);
  expect(performance.now() - before).toBeLessThan(DEADLINE_MS + 1_000);
  world.proxy.thaw();
  await waitUntil('published again', () => publisher.publish([toQueue()]).then(Boolean, () => false));
});

test('B092: under a memory alarm a publisher fails in bounded time, then at once, and goes on when the alarm is over', async () => {
  await publisher.connect();
  const limit = await world.ctl('eval', 'vm_memory_monitor:get_vm_memory_high_watermark().');
  await world.ctl('set_vm_memory_high_watermark', '0.000001');
  try {
    await expect(publisher.publish([toQueue()])).rejects.toThrow(BrokerUnavailable);
    const before = performance.now();
    await expect(publisher.publish([toQueue()])).rejects.toThrow(/takes no messages at present/);
    expect(performance.now() - before).toBeLessThan(100);
  } finally {
    await world.ctl('set_vm_memory_high_watermark', ...limitArguments(limit));
  }
  await waitUntil('published again', () => publisher.publish([toQueue()]).then(Boolean, () => false));
  // The first one was waiting in the connection: a duplicate, not a loss.
  expect(await world.messages()).toBe(2);
});

test('a rejected password is said without showing it', async () => {
  const url = new URL(world.url);
  url.password = 'hunter2';
  const stranger = new Publisher({ url: url.href, name: 'test stranger', deadlineMs: DEADLINE_MS });
  const refusal = await stranger.connect().then(String, String);
  expect(refusal).toMatch(/BrokerRefused: .*Check SUREFOOT_BROKER_URL/);
  expect(refusal).not.toContain('hunter2');
});

/** What the broker prints for its limit: `0.6`, or `{absolute,"500MB"}`. */
function limitArguments(printed: string): string[] {
  const absolute = /\{absolute, *"?([^"}]+)"?\}/.exec(printed);
  return absolute === null ? [printed] : ['absolute', absolute[1]!];
}
