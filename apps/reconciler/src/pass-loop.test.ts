import { expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import { PassLoop, type PassEnd } from './pass-loop.ts';

interface Trial {
  readonly loop: PassLoop;
  readonly ends: PassEnd[];
  readonly said: string[];
}

function trial(run: () => Promise<void>, intervalMs = 60_000): Trial {
  const ends: PassEnd[] = [];
  const said: string[] = [];
  const log = (message: string): void => void said.push(message);
  const loop = new PassLoop({ name: 'trial', intervalMs, run }, { info: log, warn: log, error: log }, (end) =>
    ends.push(end),
  );
  return { loop, ends, said };
}

test('hints during a run make one more run follow, never two at a time', async () => {
  let running = 0;
  let most = 0;
  let release = Promise.withResolvers<undefined>();
  const { loop, ends } = trial(async () => {
    running += 1;
    most = Math.max(most, running);
    await release.promise;
    running -= 1;
  });
  loop.start();
  await waitUntil('it runs', () => running === 1);
  for (let hints = 0; hints < 5; hints += 1) loop.hint();
  release.resolve(undefined);
  await waitUntil('it ran twice', () => ends.length === 2);
  release = Promise.withResolvers();
  loop.hint();
  await waitUntil('it runs again', () => running === 1);
  release.resolve(undefined);
  await loop.stop();
  expect(most).toBe(1);
  expect(ends).toHaveLength(3);
});

test('without a hint it runs at its interval', async () => {
  const { loop, ends } = trial(async () => undefined, 5);
  loop.start();
  await waitUntil('three runs', () => ends.length >= 3);
  await loop.stop();
  const count = ends.length;
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(ends).toHaveLength(count);
});

test('a failure that lasts is logged once, and so is its end', async () => {
  let failing = true;
  const { loop, ends, said } = trial(async () => {
    if (failing) throw new Error('away');
  }, 5);
  loop.start();
  await waitUntil('three failures', () => ends.length >= 3);
  failing = false;
  await waitUntil('it works', () => ends.at(-1)?.outcome === 'done');
  await loop.stop();
  expect(said).toEqual(['pass fails, it is tried again', 'pass works again']);
});

test('B107: a run that hangs gives no sign of life, and stopping waits for it', async () => {
  const hang = Promise.withResolvers<undefined>();
  const { loop, ends } = trial(() => hang.promise);
  loop.start();
  let stopped = false;
  const stop = loop.stop().then(() => (stopped = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([stopped, ends]).toEqual([false, []]);
  hang.resolve(undefined);
  await stop;
  expect(ends).toHaveLength(1);
});
