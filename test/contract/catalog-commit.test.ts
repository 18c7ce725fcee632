/** A lost reply to COMMIT is neither success nor failure: what became of the transaction is asked before anything else. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Catalog, CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import type { Tx } from '#catalog';
import { PostgresProxy, waitUntil } from '#testing';
import { CatalogWorld } from './catalog-world.ts';

const COMMIT = /^commit/i;
const FATE = /pg_xact_status/;

let world: CatalogWorld;
beforeAll(async () => {
  world = await CatalogWorld.make();
  await world.database.query('create table written (id int primary key, what text)');
  await world.database.query(
    'create table checked (id int primary key, other int references written deferrable initially deferred)',
  );
});
afterAll(() => world.remove());

let proxy: PostgresProxy;
let catalog: Catalog;
let attempts: number;
let last = 0;
/** The row that this test writes, each time it runs the transaction. */
let id: number;
beforeEach(async () => {
  proxy = await PostgresProxy.inFrontOf(world.database.url);
  catalog = new Catalog(world.pool(proxy.through(world.database.url)));
  attempts = 0;
  id = last += 1;
});
afterEach(async () => {
  proxy.rule(() => 'pass');
  proxy.lose();
  proxy.hangUp();
  await catalog.close();
  await proxy.close();
});

const write = async (tx: Tx): Promise<string> => {
  attempts += 1;
  await tx.query('insert into written (id, what) values ($1, $2)', [id, 'x']);
  return `written ${id}`;
};
const isWritten = (): Promise<boolean> => world.count('written', 'id = $1', [id]).then((count) => count === 1);

describe('a COMMIT without an answer', () => {
  test('that took effect is a success, found out by the transaction’s own id, and the work is done once', async () => {
    proxy.once(COMMIT, 'lose-reply');
    expect(await catalog.transaction(write)).toBe(`written ${id}`);
    expect([attempts, await isWritten(), proxy.count(FATE)]).toEqual([1, true, 1]);
  });

  test('that never arrived is no success, says so, and may be repeated', async () => {
    proxy.once(COMMIT, 'lose-request');
    await expect(catalog.transaction(write)).rejects.toThrow(CatalogUnavailable);
    expect([attempts, await isWritten()]).toEqual([1, false]);
    expect(await catalog.transaction(write)).toBe(`written ${id}`);
    expect([attempts, await isWritten()]).toEqual([2, true]);
  });

  test('that is still on its way is waited for: nothing is decided while the transaction is in progress', async () => {
    proxy.once(COMMIT, 'strand');
    let decided = false;
    const running = catalog.transaction(write).finally(() => (decided = true));
    await waitUntil('its fate has been asked for again and again', () => proxy.count(FATE) >= 3);
    expect([decided, await isWritten()]).toEqual([false, false]);
    proxy.release();
    expect(await running).toBe(`written ${id}`);
    expect([attempts, await isWritten()]).toEqual([1, true]);
  });

  test('that was on its way and is lost for good is no success', async () => {
    proxy.once(COMMIT, 'strand');
    const running = catalog.transaction(write);
    running.catch(() => undefined);
    await waitUntil('its fate has been asked for', () => proxy.count(FATE) >= 2);
    proxy.hangUp();
    await expect(running).rejects.toThrow(CatalogUnavailable);
    expect(await isWritten()).toBe(false);
  });

  test('whose backend an administrator ends is no success, although the server did answer something', async () => {
    proxy.once(COMMIT, 'hold');
    const running = catalog.transaction(write);
    running.catch(() => undefined);
    await waitUntil('COMMIT waits', () => proxy.held.length === 1);
    await world.database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`,
    );
    await expect(running).rejects.toThrow(CatalogUnavailable);
    expect([attempts, await isWritten(), proxy.count(FATE)]).toEqual([1, false, 1]);
  });

  test('in a catalog that stays away is known to be unknown, in the time that was given for asking', async () => {
    const hasty = new Catalog(world.pool(proxy.through(world.database.url)), 300);
    proxy.rule((text) => (COMMIT.test(text) ? 'lose-reply' : FATE.test(text) ? 'lose-request' : 'pass'));
    await expect(hasty.transaction(write)).rejects.toThrow(CatalogFateUnknown);
    // It did take effect: to report a failure would have been a lie.
    expect([attempts, await isWritten()]).toEqual([1, true]);
    await hasty.close();
  });

  test('in a catalog that is away for a while is asked for until it is back', async () => {
    let refused = 0;
    proxy.rule((text) => {
      if (COMMIT.test(text)) return 'lose-reply';
      if (!FATE.test(text) || refused >= 3) return 'pass';
      refused += 1;
      return 'lose-request';
    });
    expect(await catalog.transaction(write)).toBe(`written ${id}`);
    expect([attempts, refused, await isWritten()]).toEqual([1, 3, true]);
  });
});

describe('a transaction', () => {
  test('that the server refuses at COMMIT has that error, did nothing, and its connection is used again', async () => {
    const connections = proxy.connections;
    const refused = catalog.transaction((tx) => tx.query('insert into checked values (1, -1)'));
    await expect(refused).rejects.toMatchObject({ code: '23503' });
    expect(await catalog.transaction(write)).toBe(`written ${id}`);
    expect(proxy.connections).toBe(connections + 1);
    expect(await world.count('checked')).toBe(0);
  });

  test('is not a success when a statement had failed and the work went on: COMMIT is then answered by ROLLBACK', async () => {
    const careless = catalog.transaction(async (tx) => {
      await write(tx);
      await tx.query('select 1 / 0').catch(() => undefined);
      return 'done';
    });
    await expect(careless).rejects.toThrow('rolled back');
    expect(await isWritten()).toBe(false);
  });

  test('that loses its connection before COMMIT did nothing, and says that it may be repeated', async () => {
    for (const fate of ['lose-request', 'lose-reply'] as const) {
      proxy.once(/insert into written/, fate);
      await expect(catalog.transaction(write)).rejects.toThrow(CatalogUnavailable);
      expect(await isWritten()).toBe(false);
    }
    // Whether it was committed is not even a question.
    expect(proxy.count(FATE)).toBe(0);
  });

  test('whose work throws is rolled back, with that very error', async () => {
    const reason = new Error('not today');
    const failed = catalog.transaction(async (tx) => {
      await write(tx);
      throw reason;
    });
    await expect(failed).rejects.toBe(reason);
    expect(await isWritten()).toBe(false);
  });

  test('B152: fails fifty times in every way, and every connection is free again', async () => {
    const ways = [
      () => catalog.transaction((tx) => tx.query('select 1 / 0')),
      () => catalog.transaction(() => Promise.reject(new Error('mine'))),
      () => {
        proxy.once(/surefoot_lost/, 'lose-request');
        return catalog.transaction((tx) => tx.query('select 1 as surefoot_lost'));
      },
      () => catalog.query('select 1 / 0'),
      () => catalog.transaction((tx) => tx.query('insert into checked values (1, -1)')),
    ];
    for (let round = 0; round < 50; round += 1) await expect(ways[round % ways.length]!()).rejects.toThrow();
    // More at once than there are connections: each gets one in its turn.
    const all = await Promise.all(
      Array.from({ length: 9 }, () => catalog.transaction((tx) => tx.query('select 1 as n'))),
    );
    expect(all).toEqual(Array.from({ length: 9 }, () => [{ n: 1 }]));
  });
});
