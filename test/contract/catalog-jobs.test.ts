/** What a worker's look finds: jobs that can run, what the others wait for, and engines that are to be started. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type EngineStartAnswer, noteHeld, openJobs, requestEngineStart } from '#catalog';
import { CatalogWorld, type Queued } from './catalog-world.ts';

let world: CatalogWorld;
beforeEach(async () => {
  world = await CatalogWorld.make();
});
afterEach(() => world.remove());

const setState = (operationId: string, state: string): Promise<unknown> =>
  world.database.query('update operations set state = $2 where id = $1', [operationId, state]);

/** A delete behind a create in that state. */
async function held(state: string): Promise<{ create: Queued; remove: Queued }> {
  const create = await world.queued();
  const remove = await world.queued('environment.delete', { environmentId: create.environmentId });
  await setState(create.operationId, state);
  return { create, remove };
}

describe('the look for open jobs (invariant 12)', () => {
  const found = async (limit: number): Promise<readonly string[]> =>
    (await openJobs(world.catalog, world.hostId, limit)).map(({ jobId }) => jobId);

  test('is not filled by jobs that wait for another operation: a later one is found however many they are', async () => {
    const waiting = [await held('blocked'), await held('running'), await held('blocked')];
    const later = await world.queued();
    expect(await found(2)).toEqual([later.jobId]);
    await setState(waiting[0]!.create.operationId, 'cancelled');
    expect(await found(2)).toEqual([waiting[0]!.remove.jobId, later.jobId]);
  });

  test('of a change and a delete that are both queued finds the change', async () => {
    const { create, remove } = await held('queued');
    expect(await found(9)).toEqual([create.jobId]);
    await setState(create.operationId, 'cancelled');
    expect(await found(9)).toEqual([remove.jobId]);
  });

  test('says what the others wait for, as that changes, and writes nothing while it does not', async () => {
    const { create, remove } = await held('running');
    const free = await world.queued();
    const waitingFor = async (): Promise<unknown> => (await world.operation(remove.operationId))['waiting_for'];
    await noteHeld(world.catalog, world.hostId);
    expect(await waitingFor()).toBe(`operation ${create.operationId} (environment.create) is running`);
    const version = (): Promise<unknown> =>
      world.one('select xmin from operations where id = $1', [remove.operationId]);
    const before = await version();
    await noteHeld(world.catalog, world.hostId);
    expect(await version()).toEqual(before);
    await setState(create.operationId, 'blocked');
    await noteHeld(world.catalog, world.hostId);
    expect(await waitingFor()).toContain('is blocked');
    expect((await world.operation(free.operationId))['waiting_for']).toBeNull();
  });
});

describe('the start of an engine that is stopped', () => {
  const ask = (): Promise<EngineStartAnswer> =>
    world.catalog.transaction((tx) => requestEngineStart(tx, world.hostId, world.engineId));
  const starts = (): Promise<number> => world.count('operations', `kind = 'engine.start'`);

  /** The start that is open has this end, so many seconds ago. */
  async function ended(state: string, secondsAgo = 0): Promise<void> {
    await world.database.query(
      `update operations set state = $1, reason = '{"code": "refused", "message": "the port is taken"}',
              finished_at = now() - make_interval(secs => $2)
        where kind = 'engine.start' and state = 'queued'`,
      [state, secondsAgo],
    );
  }

  /** As if all that has happened had happened so much earlier. */
  const wait = (seconds: number): Promise<unknown> =>
    world.database.query('update operations set finished_at = finished_at - make_interval(secs => $1)', [seconds]);

  test('is asked for once, and again as soon as it is found stopped after a start that succeeded', async () => {
    expect([await ask(), await ask()]).toEqual([{ answer: 'asked' }, { answer: 'open' }]);
    await ended('succeeded');
    expect(await ask()).toEqual({ answer: 'asked' });
    expect(await starts()).toBe(2);
  });

  test('that fails is asked for ever more rarely, up to every five minutes; the catalog alone knows how often', async () => {
    const pauses: number[] = [];
    await ask();
    for (let failure = 1; failure <= 12; failure += 1) {
      await ended('failed');
      const later = await ask();
      if (later.answer !== 'later') throw new Error(`failure ${failure} is followed by ${later.answer}`);
      const { finished_at: last } = await world.one('select max(finished_at) as finished_at from operations');
      const pause = (later.at.getTime() - (last as Date).getTime()) / 1_000;
      pauses.push(pause);
      expect(later.reason?.message).toBe('the port is taken');
      expect(await starts()).toBe(failure);
      await wait(pause - 1);
      expect((await ask()).answer).toBe('later');
      await wait(1);
      expect(await ask()).toEqual({ answer: 'asked' });
    }
    expect(pauses).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
    await ended('succeeded');
    expect(await ask()).toEqual({ answer: 'asked' });
    await ended('failed');
    expect(await ask()).toMatchObject({ answer: 'later', failures: 1 });
  });
});
