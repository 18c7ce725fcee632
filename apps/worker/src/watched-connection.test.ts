import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitUntil } from '#testing';
import { WatchedConnection } from './watched-connection.ts';

let folder: string;
let server: Server;
const sockets: Socket[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watched-'));
  writeFileSync(join(folder, 'password'), 'not asked for');
  // The least of a server: whoever connects is in, and every statement is done. It closes only when the test says so.
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    let greeted = false;
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const ready = message('Z', Buffer.from('I'));
      if (!greeted) socket.write(Buffer.concat([message('R', Buffer.alloc(4)), ready]));
      else if (data[0] === 0x51) socket.write(Buffer.concat([message('C', Buffer.from('SET\0')), ready]));
      greeted = true;
    });
  }).listen(join(folder, '.s.PGSQL.5432'));
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const failing = (): Promise<never> => Promise.reject(new Error('a look failed'));
const looking = (): Promise<string> => Promise.resolve('seen');

function watched(): WatchedConnection {
  return new WatchedConnection({ socketFolder: folder, adminPasswordFile: join(folder, 'password') }, 'any');
}

test('the late end of a client that was given up leaves the one that came after it in use', async () => {
  const connection = watched();
  await expect(connection.read(failing)).rejects.toThrow('a look failed');
  expect(await connection.read(looking)).toBe('seen');
  await waitUntil('there are two connections', () => sockets.length === 2);
  sockets[0]?.destroy();
  await setTimeout(100);
  expect(await connection.read(looking)).toBe('seen');
  expect(sockets).toHaveLength(2);
  connection.close();
});

test('two looks that fail on one client each tell their own error', async () => {
  const connection = watched();
  const both = await Promise.allSettled([connection.read(failing), connection.read(failing)]);
  for (const one of both) expect(one).toMatchObject({ status: 'rejected', reason: { message: 'a look failed' } });
  connection.close();
});

test('a client whose end comes while it is in use is replaced', async () => {
  const connection = watched();
  await connection.read(looking);
  sockets[0]?.destroy();
  await setTimeout(100);
  expect(await connection.read(looking)).toBe('seen');
  expect(sockets).toHaveLength(2);
  connection.close();
});
