import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import type { LogLine, LogQuery } from '#kernel';
import { Daemon } from './daemon.ts';

const AT = '2026-01-01T00:00:00.000000001Z';
const QUERY = { tail: 100, follow: true, terminal: true };
const never = (): AbortSignal => new AbortController().signal;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function daemonThat(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Daemon> {
  const folder = mkdtempSync(join(tmpdir(), 'daemon-'));
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(join(folder, 'docker.sock'), resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  });
  return new Daemon(`unix://${folder}/docker.sock`, 500);
}

async function read(
  daemon: Daemon,
  query: LogQuery & { readonly terminal: boolean } = QUERY,
  ending = never(),
): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  for await (const batch of await daemon.logs('x', query, ending)) lines.push(...batch);
  return lines;
}

test.each([
  ['2026-01-01T00:00:00Z', '1767225600.000000000'],
  ['2026-01-01T01:00:00.123456789+01:00', '1767225600.123456789'],
  ['2026-01-01T00:00:00.5Z', '1767225600.500000000'],
])('lines since %s are asked for to the nanosecond', async (since, asked) => {
  let url = '';
  const daemon = await daemonThat((request, response) => {
    url = request.url ?? '';
    response.end(`${AT} hello\r\n${AT} last`);
  });
  const lines = await read(daemon, { tail: 7, since, follow: false, terminal: true });
  expect(lines.map(({ text }) => text)).toEqual(['hello', 'last']);
  expect(url).toBe(`/containers/x/logs?stdout=true&stderr=true&timestamps=true&follow=false&tail=7&since=${asked}`);
});

test('a container that is not there, and a daemon that is not, are told before anything is read', async () => {
  const absent = await daemonThat((_request, response) => response.writeHead(404).end('{"message":"no such"}'));
  await expect(absent.logs('x', QUERY, never())).rejects.toMatchObject({ kind: 'absent' });
  const away = new Daemon('unix:///nowhere/docker.sock');
  await expect(away.logs('x', QUERY, never())).rejects.toMatchObject({ kind: 'unreachable' });
  const silent = await daemonThat(() => undefined);
  await expect(silent.logs('x', QUERY, never())).rejects.toMatchObject({ kind: 'lost' });
});

test('a daemon that goes away in mid-stream has not ended the log', async () => {
  const daemon = await daemonThat((_request, response) => {
    response.write(`${AT} hello\r\n`);
    setTimeout(() => response.socket?.destroy(), 20);
  });
  await expect(read(daemon)).rejects.toMatchObject({ kind: 'lost' });
});

test('a log in which nothing happens is ended on request, and its connection is closed', async () => {
  const closed = Promise.withResolvers<unknown>();
  const daemon = await daemonThat((request, response) => {
    request.socket.once('close', closed.resolve);
    response.write(`${AT} hello\r\n`);
  });
  const ending = new AbortController();
  const log = await daemon.logs('x', QUERY, ending.signal);
  expect((await log.next()).value).toMatchObject([{ text: 'hello' }]);
  const next = log.next();
  ending.abort();
  await expect(next).rejects.toMatchObject({ kind: 'lost' });
  await closed.promise;
});

test('a reader that leaves closes the connection, and one that waits lets the daemon wait', async () => {
  const closed = Promise.withResolvers<unknown>();
  const line = Buffer.from(`${AT} ${'x'.repeat(1_000)}\r\n`);
  let written = 0;
  const daemon = await daemonThat((request, response) => {
    request.socket.once('close', closed.resolve);
    const write = (): void => {
      let more = true;
      while (more && written < 100_000_000) {
        more = response.write(line);
        written += line.length;
      }
    };
    response.on('drain', write);
    write();
  });
  const log = await daemon.logs('x', QUERY, never());
  await log.next();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(written).toBeLessThan(10_000_000);
  await log.return(undefined);
  await closed.promise;
});
