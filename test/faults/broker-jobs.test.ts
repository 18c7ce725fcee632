import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import { aWhile, BrokerWorld, SteppedHandler } from './broker-world.ts';

let world: BrokerWorld;
let handler: SteppedHandler;

beforeEach(async () => {
  world = await BrokerWorld.make();
  handler = new SteppedHandler();
});

afterEach(async () => {
  handler.release();
  await world.close();
});

async function drained(): Promise<void> {
  await waitUntil('the queue is empty and nothing runs', async () => {
    return handler.inFlight === 0 && (await world.messages()) === 0;
  });
}

test('a delivery is acknowledged after its handler has completed, not before', async () => {
  const server = await world.serve(handler.handle);
  const jobs = await world.publishJobs(1);
  await handler.hasBegun(1);
  // A connection that ends gives back what was not acknowledged: the job comes again.
  world.proxy.cut();
  await waitUntil(
    'it comes again',
    async () => (await world.messages()) !== undefined && server.report.status === 'ready',
  );
  handler.release();
  await drained();
  expect(handler.began).toEqual([jobs[0], jobs[0]]);
});

test('many jobs run one at a time, in order', async () => {
  await world.serve(handler.handle);
  handler.release();
  const jobs = await world.publishJobs(50);
  await waitUntil('all ran', () => handler.ended.length === 50);
  expect(handler.ended).toEqual(jobs);
  expect(handler.inFlightMost).toBe(1);
});

test('B087 B089: a connection cut in mid-handler starts no second handler, and nothing is settled on the new channel', async () => {
  const server = await world.serve(handler.handle);
  const jobs = await world.publishJobs(20);
  await handler.hasBegun(1);
  for (let cuts = 0; cuts < 3; cuts += 1) {
    world.proxy.cut();
    await waitUntil('lost', () => server.report.status !== 'ready');
    await waitUntil('subscribed again', () => server.report.status === 'ready');
  }
  await aWhile();
  expect(handler.began).toEqual([jobs[0]]);
  handler.release();
  await drained();
  expect(handler.inFlightMost).toBe(1);
  expect(handler.began.slice(1)).toEqual(jobs);
  // An unknown delivery tag would have closed a channel.
  const changes = world.log.filter((line) => line.message === 'job subscription changed');
  expect(changes.map((line) => line.fields['detail'])).not.toContainEqual(expect.stringContaining('PRECONDITION'));
  expect(changes.filter((line) => line.fields['status'] === 'ready')).toHaveLength(4);
});

test('a consumer that the broker cancelled subscribes again, to a queue that it declared again', async () => {
  const server = await world.serve(handler.handle);
  handler.release();
  await world.deleteQueue();
  await waitUntil('noticed', () => server.report.status === 'connecting');
  await waitUntil('ready again', () => server.report.status === 'ready');
  const jobs = await world.publishJobs(1);
  await waitUntil('served', () => handler.ended.length > 0);
  expect(handler.ended).toEqual(jobs);
});

test('a broker that cannot be reached for a while is reached once it can be', async () => {
  await world.proxy.refuse();
  const server = await world.serve(handler.handle, { subscribed: false });
  await waitUntil('tried', () => server.report.detail.includes('ECONNREFUSED'));
  handler.release();
  const jobs = await world.publishJobs(2);
  await world.proxy.accept();
  await drained();
  expect(handler.ended).toEqual(jobs);
});

test('a broker that is silent is given up, and found again', async () => {
  const server = await world.serve(handler.handle);
  handler.release();
  world.proxy.freeze();
  await waitUntil('given up', () => server.report.status === 'connecting', { deadlineMs: 60_000 });
  world.proxy.cut();
  world.proxy.thaw();
  const jobs = await world.publishJobs(1);
  await drained();
  expect(handler.ended).toEqual(jobs);
});

test('of two servers one is served, and the other says that it stands by', async () => {
  await world.serve(handler.handle);
  const second = new SteppedHandler();
  const standby = await world.serve(second.handle, { subscribed: false });
  await waitUntil('stands by', () => standby.report.status === 'standby');
  await world.publishJobs(2);
  await handler.hasBegun(1);
  await aWhile();
  expect(second.began).toEqual([]);
});

describe('B091: closing in mid-handler, under load', () => {
  test('no new delivery comes, the handler ends, its delivery is acknowledged, the rest stays in the queue', async () => {
    const server = await world.serve(handler.handle);
    const jobs = await world.publishJobs(5);
    await handler.hasBegun(1);
    const closed = server.close();
    await world.publishJobs(5);
    await aWhile();
    expect(handler.ended).toEqual([]);
    handler.release();
    await closed;
    expect(handler.began).toEqual([jobs[0]]);
    expect(await world.messages()).toBe(9);
    expect(server.report.status).toBe('stopped');
  });

  test('a server that never reached its broker closes at once', async () => {
    await world.proxy.refuse();
    const server = await world.serve(handler.handle, { subscribed: false });
    await server.close();
    expect(server.report.status).toBe('stopped');
  });
});

describe('what cannot be done', () => {
  test.each([
    ['no JSON', Buffer.from('not json')],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['another version', Buffer.from('{"version":2,"jobId":"7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11"}')],
    ['something to act on', Buffer.from('{"version":1,"jobId":"7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11","sql":"x"}')],
    ['no id', Buffer.from('{"version":1,"jobId":"x"}')],
    ['nothing', Buffer.alloc(0)],
  ])('a message with %s goes to the dead letters, and the next one is served', async (_what, content) => {
    await world.serve(handler.handle);
    handler.release();
    await world.publish([content]);
    const jobs = await world.publishJobs(1);
    await waitUntil('served', () => handler.ended.length === 1);
    expect(handler.ended).toEqual(jobs);
    expect(Buffer.from(await world.take(world.topology.deadQueue))).toEqual(Buffer.from(content.toString()));
    expect(world.log).toContainEqual(expect.objectContaining({ message: 'malformed job message to dead letters' }));
  });

  test('B084: a job whose handler always fails comes back a bounded number of times, then lies among the dead letters', async () => {
    let tries = 0;
    await world.serve(() => {
      tries += 1;
      throw new Error('never');
    });
    const [job] = await world.publishJobs(1);
    expect(await world.take(world.topology.deadQueue)).toContain(job);
    expect(tries).toBe(21);
    expect(await world.messages()).toBe(0);
  });

  test('B086: a queue that is there with other settings is refused with a clear message, and served once it is gone', async () => {
    await world.deleteQueue();
    await world.declareQueue(world.topology.queue, { 'x-queue-type': 'quorum' });
    const server = await world.serve(handler.handle, { subscribed: false });
    await waitUntil('refused', () => server.report.status === 'refused');
    expect(server.report.detail).toMatch(/exists with other settings .*x-.*Nothing was changed/);
    await world.deleteQueue();
    await waitUntil('ready', () => server.report.status === 'ready');
  });
});
