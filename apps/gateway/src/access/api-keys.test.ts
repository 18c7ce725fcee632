import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { CatalogUnavailable } from '#catalog';
import { Problem } from '#kernel';
import { ApiKeys } from './api-keys.ts';

function world() {
  const rows = new Map<string, { id: string; name: string; role: string; project_ids: null }>();
  const state = { now: 0, looks: 0, down: false };
  const keys = new ApiKeys(
    async (hash) => {
      state.looks += 1;
      if (state.down) throw new CatalogUnavailable('down');
      return rows.get(hash.toString('hex'));
    },
    () => state.now,
  );
  const add = (key: string, role = 'viewer') =>
    rows.set(createHash('sha256').update(key).digest('hex'), { id: key, name: key, role, project_ids: null });
  return { keys, state, add, revoke: () => rows.clear() };
}

test('a key is found by its hash, and remembered for five seconds', async () => {
  const { keys, state, add, revoke } = world();
  add('sfk_one');
  expect(await keys.authenticate('Bearer sfk_one')).toMatchObject({ name: 'sfk_one', role: 'viewer' });
  revoke();
  state.now = 4_999;
  await keys.authenticate('bearer sfk_one');
  expect(state.looks).toBe(1);
  state.now = 5_000;
  await expect(keys.authenticate('Bearer sfk_one')).rejects.toThrow(Problem);
});

test('requests that come at once ask once', async () => {
  const { keys, state, add } = world();
  add('k');
  await Promise.all(Array.from({ length: 20 }, () => keys.authenticate('Bearer k')));
  expect(state.looks).toBe(1);
});

test('a key that was not found is not remembered: once made, it works', async () => {
  const { keys, add } = world();
  await expect(keys.authenticate('Bearer k')).rejects.toThrow(Problem);
  add('k');
  expect(await keys.authenticate('Bearer k')).toMatchObject({ name: 'k' });
});

test('while the catalog is down nobody is told that the key is wrong', async () => {
  const { keys, state, add } = world();
  add('k');
  state.down = true;
  await expect(keys.authenticate('Bearer k')).rejects.toThrow(CatalogUnavailable);
  state.down = false;
  expect(await keys.authenticate('Bearer k')).toMatchObject({ name: 'k' });
});

test.each([undefined, '', 'Basic YTpi', 'Bearer', 'Bearer ', 'Bearer a b', 'Bearer ü', `Bearer ${'x'.repeat(513)}`])(
  'the header %j is no key, and the catalog is not asked',
  async (header) => {
    const { keys, state } = world();
    await expect(keys.authenticate(header)).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(state.looks).toBe(0);
  },
);

test('a role that this version does not know gives no right at all', async () => {
  const { keys, add } = world();
  add('k', 'emperor');
  await expect(keys.authenticate('Bearer k')).rejects.toMatchObject({ code: 'unauthenticated' });
});
