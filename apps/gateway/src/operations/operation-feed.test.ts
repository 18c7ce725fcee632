import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { CatalogUnavailable, type ShownOperation } from '#catalog';
import type { OperationView } from '../schemas/operation.ts';
import { OperationFeed } from './operation-feed.ts';

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

function operation(id: string, state: ShownOperation['state'], stage: string = state): ShownOperation {
  return {
    id,
    project_id: null,
    kind: 'environment.create',
    environment_id: null,
    environment: null,
    state,
    stage,
    attempt: 1,
    effects: [],
    reason: null,
    waiting_for: null,
    progress: null,
    case_id: null,
    created_at: new Date(0),
    finished_at: null,
    page_at: '',
  };
}

function world() {
  const rows = new Map<string, ShownOperation>();
  const state = { looks: 0, down: false };
  const feed = new OperationFeed(async (ids) => {
    state.looks += 1;
    if (state.down) throw new CatalogUnavailable('down');
    return ids.flatMap((id) => rows.get(id) ?? []);
  }, QUIET);
  const follow = (id: string) => {
    const told: string[] = [];
    const stream: { readonly told: string[]; ended: boolean; leave(): void } = { told, ended: false, leave: () => {} };
    const subscription = feed.follow(rows.get(id)!).subscribe({
      next: (view: OperationView) => told.push(view.stage),
      complete: () => (stream.ended = true),
    });
    stream.leave = () => subscription.unsubscribe();
    return stream;
  };
  return { feed, rows, state, follow };
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('a stream tells what is, then each change once, and ends with the operation', async () => {
  const { rows, follow } = world();
  rows.set('a', operation('a', 'running', 'roles'));
  const stream = follow('a');
  expect(stream.told).toEqual(['roles']);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(stream.told).toEqual(['roles']);
  rows.set('a', operation('a', 'running', 'database'));
  await jest.advanceTimersByTimeAsync(250);
  rows.set('a', operation('a', 'succeeded'));
  await jest.advanceTimersByTimeAsync(250);
  expect(stream).toMatchObject({ told: ['roles', 'database', 'succeeded'], ended: true });
});

test('an operation that has ended is told once, and nothing is watched', async () => {
  const { rows, state, follow } = world();
  rows.set('a', operation('a', 'failed'));
  expect(follow('a')).toMatchObject({ told: ['failed'], ended: true });
  await jest.advanceTimersByTimeAsync(1_000);
  expect(state.looks).toBe(0);
});

test('a blocked operation is not at its end', async () => {
  const { rows, follow } = world();
  rows.set('a', operation('a', 'blocked'));
  const stream = follow('a');
  await jest.advanceTimersByTimeAsync(1_000);
  expect(stream.ended).toBe(false);
  stream.leave();
});

test('all streams share one look, and none looks when the last has left', async () => {
  const { rows, state, follow } = world();
  for (const id of ['a', 'b']) rows.set(id, operation(id, 'running'));
  const streams = ['a', 'a', 'b'].map(follow);
  await jest.advanceTimersByTimeAsync(250);
  expect(state.looks).toBe(1);
  for (const stream of streams) stream.leave();
  await jest.advanceTimersByTimeAsync(2_000);
  expect(state.looks).toBeLessThanOrEqual(2);
});

test('a stream outlives an absence of the catalog', async () => {
  const { rows, state, follow } = world();
  rows.set('a', operation('a', 'running'));
  const stream = follow('a');
  state.down = true;
  await jest.advanceTimersByTimeAsync(1_000);
  expect(stream.ended).toBe(false);
  state.down = false;
  rows.set('a', operation('a', 'succeeded'));
  await jest.advanceTimersByTimeAsync(250);
  expect(stream.ended).toBe(true);
});

test('closing ends every stream', () => {
  const { feed, rows, follow } = world();
  rows.set('a', operation('a', 'running'));
  const streams = [follow('a'), follow('a')];
  feed.close();
  expect(streams.map(({ ended }) => ended)).toEqual([true, true]);
});
