import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { chooseFreePorts, isFree, listenerOn } from './ports.mjs';

test('ports are distinct, and one that is taken is passed over', async () => {
  const offered = [20_001, 20_001, 20_002, 20_003];
  const ports = await chooseFreePorts(2, {
    pick: () => offered.shift() ?? 0,
    free: async (port) => port !== 20_002,
  });
  assert.deepEqual(ports, [20_001, 20_003]);
});

test('the search ends where nothing is free', async () => {
  await assert.rejects(chooseFreePorts(1, { free: async () => false }), /no 1 free ports/);
});

test('a port on which anybody listens, on whatever address, is not free, and its listener is named', async () => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  assert.equal(await isFree(address.port), false);
  assert.match(await listenerOn(address.port), new RegExp(`^process ${process.pid} \\(`));
  await new Promise((resolve) => server.close(resolve));
  assert.equal(await isFree(address.port), true);
});
