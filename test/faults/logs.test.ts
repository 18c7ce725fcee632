/** Logs of containers through the broker, with everything that can go away in between. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connect } from 'amqplib';
import { logRequestQueue, LogsRefused } from '#broker';
import { Daemon } from '#docker';
import { LOG_ANSWER_MAX_BYTES, LOG_LINE_MAX_BYTES, LOG_STREAMS_MAX, type LogLine } from '#kernel';
import { inStackContainer, waitUntil } from '#testing';
import { LogsWorld } from './logs-world.ts';

/** Writes a line a hundred times a second, numbered. */
const COUNTS = 'for ((i = 0; ; i++)); do echo "line $i"; sleep 0.01; done';
const SLEEPS = 'echo ready; exec sleep infinity';

let world: LogsWorld;
beforeEach(async () => void (world = await LogsWorld.make()));
afterEach(async () => world.close());

/** The log's own connection and nothing else. */
async function daemonIsLeft(): Promise<void> {
  await waitUntil('nothing is read from the daemon', () => world.daemon.connections === 0, { deadlineMs: 10_000 });
}

function numbers(lines: readonly LogLine[]): readonly number[] {
  return lines.map(({ text }) => Number(text.replace('line ', '')));
}

describe('what has been written', () => {
  test('is told in order, with times to the nanosecond and the stream of each line', async () => {
    const id = await world.finished(
      'for i in 1 2 3; do echo "out $i é🐘"; sleep 0.05; echo "err $i" >&2; sleep 0.05; done',
    );
    const told = await world.read(id);
    expect(told.lines.map(({ stream, text }) => `${stream} ${text}`)).toEqual(
      [1, 2, 3].flatMap((i) => [`stdout out ${i} é🐘`, `stderr err ${i}`]),
    );
    const times = told.lines.map(({ at }) => at);
    for (const at of times) expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    expect([...times].sort()).toEqual(times);
    expect(told.end).toMatchObject({ reason: 'complete', truncated: false });
    expect((await world.read(id, { tail: 2 })).texts).toEqual(['out 3 é🐘', 'err 3']);
    expect((await world.read(id, { since: times[3]! })).texts).toEqual(told.texts.slice(3));
    expect((await world.read(id, { tail: 1, since: times[3]! })).texts).toEqual(['err 3']);
    await daemonIsLeft();
  });

  test('by a container with a terminal comes without the terminal’s carriage returns', async () => {
    const id = await world.finished('echo one; echo two >&2; printf "no line end"', { terminal: true });
    expect((await world.read(id)).lines).toMatchObject(
      ['one', 'two', 'no line end'].map((text) => ({ stream: 'stdout', text })),
    );
  });

  test('in lines of any length and any bytes is cut where it is too long, and nothing after it is lost', async () => {
    const id = await world.finished(
      `printf 'é%.0s' {1..50000}; echo; printf 'x%.0s' {1..${LOG_LINE_MAX_BYTES}}; echo; printf 'a\\xff\\xfeb\\x1b[31m\\n'; echo; printf end`,
    );
    const { lines } = await world.read(id);
    expect(lines.map(({ text, cut }) => [text, cut])).toEqual([
      ['é'.repeat(LOG_LINE_MAX_BYTES / 2), true],
      ['x'.repeat(LOG_LINE_MAX_BYTES), undefined],
      ['a\ufffd\ufffdb\u001b[31m', undefined],
      ['', undefined],
      ['end', undefined],
    ]);
  });

  test('of more than an answer holds is told to its end, and that the rest was left out', async () => {
    const id = await world.finished(`for i in {1..3000}; do printf '%s %01000d\\n' $i 0; done`);
    const told = await world.read(id);
    expect(told.texts.at(-1)).toMatch(/^3000 /);
    expect(told.end).toMatchObject({ reason: 'complete', truncated: true });
    const bytes = Buffer.byteLength(JSON.stringify(told.lines));
    expect(bytes).toBeGreaterThan(LOG_ANSWER_MAX_BYTES * 0.9);
    expect(bytes).toBeLessThan(LOG_ANSWER_MAX_BYTES * 1.1);
    expect(told.missing).toBe(0);
  });
});

describe('a log that is followed', () => {
  test('tells what is written as it is written, and ends when the container stops', async () => {
    const id = await world.container('echo before; read -t 1 < <(sleep infinity); echo after; exec sleep infinity');
    const told = await world.open(id, { follow: true });
    await told.hasLines(1);
    expect(told.texts).toEqual(['before']);
    await told.hasLines(2);
    await world.docker.getContainer(id).kill();
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'stopped' });
    await daemonIsLeft();
  });

  test('is alive while nothing is written', async () => {
    const reader = world.newReader(6_000);
    const told = await world.open(await world.container(SLEEPS), { follow: true }, reader);
    await waitUntil('three signs of life', () => told.events.filter(({ type }) => type === 'alive').length >= 3);
    expect(told.end).toBeUndefined();
    await reader.close('gateway_stopping');
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'gateway_stopping' });
  });

  test.each([
    ['writes', COUNTS],
    ['is silent', SLEEPS],
  ])('of a container that %s is left when its reader leaves', async (_what, script) => {
    const told = await world.open(await world.container(script), { follow: true });
    await told.hasLines(1);
    expect(world.daemon.connections).toBe(1);
    told.feed.close();
    await told.ended;
    await daemonIsLeft();
  });

  test('is left when the reader’s connection breaks, and the reader is told', async () => {
    const told = await world.open(await world.container(COUNTS), { follow: true });
    await told.hasLines(1);
    world.gatewaysBroker.cut();
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'broker_unavailable' });
    await daemonIsLeft();
    // The next reader comes by a new connection.
    expect((await world.open(await world.container(SLEEPS), { follow: true })).end).toBeUndefined();
  });

  test('outlives the worker’s connections: no line is lost, none comes twice', async () => {
    const told = await world.open(await world.container(COUNTS), { follow: true });
    for (let cuts = 1; cuts <= 3; cuts += 1) {
      await told.hasLines(50 * cuts);
      world.workersBroker.cut();
    }
    await told.hasLines(250);
    expect(numbers(told.lines)).toEqual(told.lines.map((_line, index) => index));
    expect(told.missing).toBe(0);
    await world.isServed();
  });

  test('tells a reader who is slow how many lines it has missed', async () => {
    const id = await world.finished(`for i in {0..9999}; do printf 'line %d %02000d\\n' $i 0; done`);
    const feed = await world.reader.open(world.hostId, { containerId: id, tail: 10_000, follow: true });
    // Everything is on its way before anything is read: more than the queue holds.
    await daemonIsLeft();
    const told: number[] = [];
    let missing = 0;
    for await (const event of feed) {
      if (event.type === 'gap') missing += event.missing;
      if (event.type === 'lines') told.push(...event.lines.map(({ text }) => Number(text.split(' ')[1])));
      if (event.type === 'end') expect(event.reason).toBe('stopped');
    }
    expect(missing).toBeGreaterThan(1_000);
    expect(told.length + missing).toBe(10_000);
    expect(told.at(-1)).toBe(9_999);
    expect(told).toEqual([...new Set(told)].sort((a, b) => a - b));
  });

  test('ends with a word when the worker stops', async () => {
    const told = await world.open(await world.container(COUNTS), { follow: true });
    await told.hasLines(1);
    await world.watch.close();
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'host_unavailable' });
    await daemonIsLeft();
  });

  test('does not keep a worker that stops, also when the broker is silent', async () => {
    const id = await world.container(COUNTS);
    const streams = await Promise.all(Array.from({ length: 5 }, () => world.open(id, { follow: true })));
    for (const told of streams) await told.hasLines(1);
    world.workersBroker.freeze();
    const before = performance.now();
    await world.watch.close();
    expect(performance.now() - before).toBeLessThan(10_000);
    await daemonIsLeft();
  });

  test('ends when the worker falls silent', async () => {
    const reader = world.newReader(1_000);
    const told = await world.open(await world.container(COUNTS), { follow: true }, reader);
    await told.hasLines(1);
    world.workersBroker.freeze();
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'host_unavailable' });
    await reader.close('gateway_stopping');
  });

  test('ends when the daemon dies, after the lines that came before, and the next one is refused', async () => {
    const id = await world.container(COUNTS);
    const told = await world.open(id, { follow: true });
    await told.hasLines(10);
    await world.daemon.die();
    await told.ended;
    expect(told.end).toMatchObject({ reason: 'daemon_unreachable' });
    await expect(world.open(id)).rejects.toMatchObject({ code: 'daemon_unreachable' });
    await world.daemon.accept();
    expect((await world.read(id, { tail: 3 })).lines).toHaveLength(3);
  });
});

test('a broker that is restarted ends what is followed, at both ends, and serves logs again', async () => {
  const id = await world.container(COUNTS);
  const told = await world.open(id, { follow: true });
  await told.hasLines(1);
  const { dockerHost, brokerUrl } = world.settings;
  const docker = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('docker', ['-H', dockerHost, ...args])).stdout.trim();
  const broker = await docker('ps', '-q', '--filter', `publish=${new URL(brokerUrl).port}`);
  await docker('restart', '-t', '20', broker);
  await told.ended;
  expect(told.end).toMatchObject({ reason: 'broker_unavailable' });
  await waitUntil(
    'logs are read again',
    async () => {
      try {
        return (await world.read(id, { tail: 3 })).lines.length === 3;
      } catch (error) {
        expect(error).toMatchObject({ code: 'host_unavailable' });
        return false;
      }
    },
    { deadlineMs: 60_000 },
  );
  await daemonIsLeft();
  expect(world.log.map(({ message }) => message)).toEqual([
    'logs are served',
    'logs cannot be served',
    'logs are served',
  ]);
}, 120_000);

describe('what is refused', () => {
  test('without a worker, at once', async () => {
    const { hostId } = world;
    await world.watch.close();
    const before = performance.now();
    const asked = world.reader.open(hostId, { containerId: 'c'.repeat(64), tail: 1, follow: false });
    await expect(asked).rejects.toThrow(
      new LogsRefused('host_unavailable', `the worker of host ${hostId} does not run`),
    );
    expect(performance.now() - before).toBeLessThan(2_000);
  });

  test('without a broker', async () => {
    await world.gatewaysBroker.refuse();
    await expect(world.open('c'.repeat(64))).rejects.toMatchObject({ code: 'host_unavailable' });
    await world.gatewaysBroker.accept();
    await expect(world.open('c'.repeat(64))).rejects.toMatchObject({ code: 'not_found' });
  });

  test('when the worker does not answer', async () => {
    const reader = world.newReader(500);
    world.workersBroker.freeze();
    await expect(world.open('c'.repeat(64), {}, reader)).rejects.toMatchObject({ code: 'host_unavailable' });
    await reader.close('gateway_stopping');
  });

  test('of a container that is gone, of an engine, and of another installation', async () => {
    const engine = await world.container(SLEEPS, { kind: 'engine' });
    const theirs = await world.container(SLEEPS, { installation: randomUUID() });
    for (const id of ['c'.repeat(64), engine, theirs])
      await expect(world.open(id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test(`of a host that reads ${LOG_STREAMS_MAX} logs already, until one of them is left`, async () => {
    const id = await world.container(SLEEPS);
    const open = () => world.open(id, { follow: true });
    const streams = [];
    for (let count = 0; count < LOG_STREAMS_MAX; count += 1) streams.push(await open());
    await expect(open()).rejects.toMatchObject({ code: 'rate_limited' });
    streams[0]!.feed.close();
    await waitUntil('there is room', () =>
      open().then(
        () => true,
        () => false,
      ),
    );
  });

  test('whatever is no request is dropped, and its content is not repeated', async () => {
    const connection = await connect(world.settings.brokerUrl);
    const channel = await connection.createConfirmChannel();
    const request = { version: 1, id: '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11', containerId: 'c'.repeat(64), tail: 1 };
    const wrong = [
      'secret, not JSON',
      JSON.stringify({ ...request, follow: false, version: 2 }),
      JSON.stringify({ ...request, follow: false, containerId: 'secret/../../x' }),
      JSON.stringify({ ...request, follow: false, id: 'secret' }),
      JSON.stringify({ ...request, follow: false, tail: 1e9 }),
      JSON.stringify({ ...request, follow: false, since: 'secret' }),
      JSON.stringify({ ...request, follow: false, replyTo: 'secret' }),
      JSON.stringify(request),
    ];
    for (const text of wrong) channel.sendToQueue(logRequestQueue(world.hostId), Buffer.from(text));
    await channel.waitForConfirms();
    await connection.close();
    await waitUntil('all are dropped', () => world.log.filter(({ level }) => level === 'warn').length === wrong.length);
    expect(JSON.stringify(world.log)).not.toContain('secret');
    const id = await world.finished('echo well');
    expect((await world.read(id)).texts).toEqual(['well']);
  });
});

test('B061: twelve logs that nobody reads on do not keep the daemon’s other calls waiting', async () => {
  const id = await world.container('while :; do printf "%01000d\\n" 0; done');
  const feeds = await Promise.all(
    Array.from({ length: 12 }, () => world.reader.open(world.hostId, { containerId: id, tail: 10_000, follow: true })),
  );
  expect(world.daemon.connections).toBe(12);
  await setTimeout(1_000);
  const daemon = new Daemon(world.daemon.dockerHost);
  for (let calls = 0; calls < 20; calls += 1) {
    const before = performance.now();
    expect((await daemon.container(id))?.State.Running).toBe(true);
    expect(performance.now() - before).toBeLessThan(2_000);
  }
  await waitUntil('only the logs are read', () => world.daemon.connections === 12);
  for (const feed of feeds) feed.close();
  await daemonIsLeft();
});

test('no line is logged, nor is any kept by the broker once its reader is gone', async () => {
  const id = await world.container('while :; do echo a-line-of-an-application; sleep 0.01; done');
  const told = await world.open(id, { follow: true });
  await told.hasLines(50);
  told.feed.close();
  await daemonIsLeft();
  expect(JSON.stringify(world.log)).not.toContain('a-line');
  expect(await answerQueues()).toEqual([]);
});

async function answerQueues(): Promise<readonly string[]> {
  const { dockerHost, brokerUrl } = world.settings;
  const command = ['rabbitmqctl', '-q', 'list_queues', 'name', 'messages', '--no-table-headers'];
  const listed = await inStackContainer(dockerHost, brokerUrl, { command });
  return listed.split('\n').filter((line) => line.includes('log-answers'));
}
