import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Daemon } from './daemon.ts';
import type { PullProgress } from './pull.ts';

/** A daemon that answers as a test wants it to. */
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function daemonThat(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'daemon-'));
  const socket = join(folder, 'docker.sock');
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  });
  return `unix://${socket}`;
}

function says(status: number, body: object | string): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

describe('what the daemon answers', () => {
  test.each([
    [400, 'refused'],
    [403, 'refused'],
    [404, 'absent'],
    [409, 'conflict'],
    [500, 'failed'],
    [503, 'failed'],
  ])('status %i of a change is %s, with the daemon’s own sentence', async (status, kind) => {
    const daemon = new Daemon(await daemonThat(says(status, { message: 'because\n' })));
    await expect(daemon.removeContainer('x')).rejects.toMatchObject({ kind, status, message: 'because' });
    expect(daemon.changes).toBe(1);
  });

  test('a container that runs already is started, and one that rests is stopped', async () => {
    const daemon = new Daemon(await daemonThat((_request, response) => response.writeHead(304).end()));
    await expect(daemon.startContainer('x')).resolves.toBeUndefined();
    await expect(daemon.stopContainer('x', 1)).resolves.toBeUndefined();
  });

  test('absence is an answer, not an error', async () => {
    const daemon = new Daemon(await daemonThat(says(404, { message: 'no such thing' })));
    expect(await daemon.container('x')).toBeUndefined();
    expect(await daemon.volume('x')).toBeUndefined();
    expect(await daemon.image('x')).toBeUndefined();
  });
});

describe('what the daemon does not answer', () => {
  test('a daemon that is not there was asked for nothing', async () => {
    const daemon = new Daemon('unix:///nowhere/docker.sock');
    await expect(daemon.startContainer('x')).rejects.toMatchObject({ kind: 'unreachable' });
    expect(daemon.changes).toBe(0);
  });

  test('a connection that is cut before the answer is lost', async () => {
    const daemon = new Daemon(await daemonThat((request) => request.socket.destroy()));
    await expect(daemon.startContainer('x')).rejects.toMatchObject({ kind: 'lost' });
    expect(daemon.changes).toBe(1);
  });

  test('a daemon that says nothing is lost at our deadline, and the connection is closed', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const daemon = new Daemon(
      await daemonThat((request) => {
        closed = new Promise((resolve) => request.socket.once('close', resolve));
      }),
      50,
    );
    await expect(daemon.startContainer('x')).rejects.toMatchObject({
      kind: 'lost',
      message: 'the Docker daemon has not answered within 50 ms',
    });
    await closed;
    expect(daemon.changes).toBe(1);
  });

  test('a look can have a deadline of its own, by the time at which it begins', async () => {
    let lookMs = 50;
    const socket = await daemonThat((_request, response) => {
      setTimeout(() => says(200, [])(_request, response), 300);
    });
    const daemon = new Daemon(socket, { look: () => lookMs, change: () => 5_000 });
    await expect(daemon.containers()).rejects.toMatchObject({ kind: 'lost', ofChange: false });
    await expect(daemon.removeContainer('x')).resolves.toBeUndefined();
    lookMs = 5_000;
    expect(await daemon.containers()).toEqual([]);
  });

  test('a daemon that dies in the middle of its answer is lost at our deadline', async () => {
    const daemon = new Daemon(
      await daemonThat((_request, response) => {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('{"Id":');
        setTimeout(() => response.socket?.destroy(), 10);
      }),
      200,
    );
    await expect(daemon.container('x')).rejects.toMatchObject({ kind: 'lost' });
  });

  test('B061: twenty calls that hang do not keep another one waiting', async () => {
    const daemon = new Daemon(
      await daemonThat((request, response) => {
        if (request.url?.startsWith('/containers/hangs') === false) says(200, [])(request, response);
      }),
      2_000,
    );
    const hanging = Array.from({ length: 20 }, () => daemon.container('hangs').catch(() => 'lost'));
    expect(await daemon.containers()).toEqual([]);
    expect(await Promise.race([...hanging, Promise.resolve('still hanging')])).toBe('still hanging');
    expect(await Promise.all(hanging)).toEqual(hanging.map(() => 'lost'));
  });
});

describe('what happens to containers', () => {
  test.each([
    ['as daemons tell it now', [{ Type: 'container', Action: 'die', Actor: { ID: 'c1' } }]],
    ['as they told it before', [{ status: 'die', id: 'c1' }]],
    ['as many tell it both ways', [{ status: 'die', id: 'c1', Actor: { ID: 'c1' } }, { Type: 'container' }]],
  ])('is told by the container’s id, %s', async (_how, events) => {
    let asked = '';
    const daemon = new Daemon(
      await daemonThat((request, response) => {
        asked = request.url ?? '';
        says(200, events.map((event) => `${JSON.stringify(event)}\n`).join(''))(request, response);
      }),
    );
    const told: string[] = [];
    await daemon.watchContainers(['a=b'], (id) => void told.push(id), new AbortController().signal);
    expect(told).toEqual(['c1']);
    const { event, label } = JSON.parse(new URL(asked, 'http://x').searchParams.get('filters') ?? '') as {
      readonly event: readonly string[];
      readonly label: readonly string[];
    };
    expect(label).toEqual(['a=b']);
    expect(event).toEqual(expect.arrayContaining(['die', 'start', 'oom', 'destroy', 'health_status']));
    // A health check of its own would wake whoever watches it, each time.
    expect(event.filter((name) => name.startsWith('exec'))).toEqual([]);
  });
});

describe('B059: a pull', () => {
  const progress = (...lines: object[]): string => lines.map((line) => `${JSON.stringify(line)}\r\n`).join('');

  test('is done when its last line says so', async () => {
    const daemon = new Daemon(
      await daemonThat(says(200, progress({ status: 'Pulling' }, { status: 'Status: Image is up to date' }))),
    );
    await expect(daemon.pull('x:1', { deadlineMs: 1_000 })).resolves.toBeUndefined();
  });

  test('tells how many bytes of the layers that it has begun are there, and counts none twice', async () => {
    const layer = (id: string, status: string, current?: number, total?: number): object => ({
      id,
      status,
      progressDetail: current === undefined ? {} : { current, total },
    });
    const daemon = new Daemon(
      await daemonThat(
        says(
          200,
          progress(
            { status: 'Pulling from app', id: '1' },
            layer('a', 'Pulling fs layer'),
            layer('b', 'Already exists'),
            layer('a', 'Downloading', 10, 100),
            layer('c', 'Downloading', 5, 50),
            layer('a', 'Downloading', 60, 100),
            layer('a', 'Verifying Checksum'),
            layer('a', 'Download complete'),
            layer('a', 'Extracting', 1, 100),
            layer('c', 'Downloading', 50, 50),
            layer('a', 'Pull complete'),
            { status: 'Status: Downloaded newer image for app:1' },
          ),
        ),
      ),
    );
    const told: string[] = [];
    const onProgress = ({ doneBytes, totalBytes }: PullProgress): void => void told.push(`${doneBytes}/${totalBytes}`);
    await daemon.pull('x:1', { deadlineMs: 1_000, onProgress });
    expect(told).toEqual(['10/100', '15/150', '65/150', '105/150', '105/150', '150/150', '150/150']);
  });

  test('with an error inside the stream has failed, although its status was 200', async () => {
    const daemon = new Daemon(
      await daemonThat(says(200, progress({ status: 'Pulling' }, { error: 'manifest unknown' }))),
    );
    await expect(daemon.pull('x:1', { deadlineMs: 1_000 })).rejects.toMatchObject({
      kind: 'failed',
      message: 'the image could not be pulled: manifest unknown',
    });
  });

  test('whose stream just ends is lost, and so is one that is cut', async () => {
    const ends = new Daemon(await daemonThat(says(200, progress({ status: 'Pulling' }))));
    await expect(ends.pull('x:1', { deadlineMs: 1_000 })).rejects.toMatchObject({ kind: 'lost' });
    const cut = new Daemon(
      await daemonThat((_request, response) => {
        response.writeHead(200);
        response.write(progress({ status: 'Pulling' }));
        setTimeout(() => response.socket?.destroy(), 10);
      }),
    );
    await expect(cut.pull('x:1', { deadlineMs: 1_000 })).rejects.toMatchObject({ kind: 'lost' });
  });
});
