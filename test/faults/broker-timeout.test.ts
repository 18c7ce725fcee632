import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import { BrokerWorld, SteppedHandler } from './broker-world.ts';

let world: BrokerWorld;
let handler: SteppedHandler;

beforeEach(async () => {
  world = await BrokerWorld.make({ deliveryTimeoutMs: 1_000 });
  handler = new SteppedHandler();
  // Channels look for late acknowledgements once a minute; those of this test more often.
  await world.ctl('eval', 'application:set_env(rabbit, channel_tick_interval, 500).');
});

afterEach(async () => {
  handler.release();
  await world.ctl('eval', 'application:set_env(rabbit, channel_tick_interval, 60000).');
  await world.close();
});

test('B081 B082: a delivery timeout in mid-handler redelivers, starts nothing twice at a time, and leaves nobody deaf', async () => {
  const server = await world.serve(handler.handle);
  const jobs = await world.publishJobs(2);
  await handler.hasBegun(1);
  const closedByTimeout = (): number =>
    world.log.filter((line) => String(line.fields['detail']).includes('timed out')).length;
  await waitUntil('two timeouts', () => closedByTimeout() >= 2);
  expect(handler.began).toEqual([jobs[0]]);
  handler.release();
  await waitUntil('both are done', () => handler.ended.includes(jobs[1]!));
  await waitUntil('ready', async () => server.report.status === 'ready' && (await world.messages()) === 0);
  expect(handler.inFlightMost).toBe(1);
});
