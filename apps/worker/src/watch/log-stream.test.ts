import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LogAnswer, LogRequest } from '#broker';
import { DaemonError, type ContainerInfo } from '#docker';
import { LOG_ANSWER_MAX_BYTES, type LogLine } from '#kernel';
import { streamLog } from './log-stream.ts';

const INSTALLATION = '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11';
const REQUEST: LogRequest = { id: INSTALLATION, containerId: 'c'.repeat(64), tail: 100, follow: true };
const SERVICE = { 'surefoot.installation': INSTALLATION, 'surefoot.kind': 'service' };

function line(text: string): LogLine {
  return { at: '2026-01-01T00:00:00.000000001Z', stream: 'stdout', text };
}

function container({ labels = SERVICE, startedAt = 'then', running = true, terminal = false } = {}): ContainerInfo {
  const found = {
    Id: REQUEST.containerId,
    Config: { Labels: labels, Tty: terminal },
    State: { Running: running, StartedAt: startedAt },
  };
  return found as unknown as ContainerInfo;
}

/** A log that a test writes, and what its reader was told. */
class World {
  readonly told: LogAnswer[] = [];
  readonly ending = new AbortController();
  /** One after the other; the last stays. */
  containers: (ContainerInfo | DaemonError | undefined)[] = [container()];
  readonly queries: unknown[] = [];
  reads = true;
  #next = Promise.withResolvers<readonly LogLine[] | undefined>();

  write(...written: readonly string[]): Promise<void> {
    return this.#tell((next) => next.resolve(written.map(line)));
  }

  end(): Promise<void> {
    return this.#tell((next) => next.resolve(undefined));
  }

  fail(kind: DaemonError['kind']): Promise<void> {
    return this.#tell((next) => next.reject(new DaemonError(kind, kind)));
  }

  run(request: Partial<LogRequest> = {}): Promise<void> {
    const daemon = {
      container: async () => {
        const found = this.containers.length > 1 ? this.containers.shift() : this.containers[0];
        if (found instanceof DaemonError) throw found;
        return found;
      },
      logs: async (_id: string, query: unknown, ending: AbortSignal) => {
        this.queries.push(query);
        ending.addEventListener('abort', () => void this.fail('lost'));
        return this.#lines();
      },
    };
    const send = async (answer: LogAnswer): Promise<boolean> => {
      if (this.reads) this.told.push(answer);
      return this.reads;
    };
    const source = { daemon, installation: INSTALLATION };
    return streamLog(source, { ...REQUEST, ...request }, send, this.ending.signal);
  }

  async *#lines(): AsyncGenerator<readonly LogLine[]> {
    for (let lines = await this.#next.promise; lines !== undefined; lines = await this.#next.promise) {
      this.#next = Promise.withResolvers();
      yield lines;
    }
  }

  /** Returns when it has been heard. */
  async #tell(say: (next: PromiseWithResolvers<readonly LogLine[] | undefined>) => void): Promise<void> {
    say(this.#next);
    await jest.advanceTimersByTimeAsync(0);
  }
}

let world: World;
beforeEach(() => {
  jest.useFakeTimers();
  world = new World();
});
afterEach(() => void jest.useRealTimers());

const passes = (milliseconds: number): Promise<void> => jest.advanceTimersByTimeAsync(milliseconds);

function texts(): readonly string[] {
  return world.told.flatMap((answer) => ('lines' in answer ? answer.lines : [])).map(({ text }) => text);
}

describe('a log that is followed', () => {
  test('begins with a word, tells lines soon and together, counts them, and says why it ends', async () => {
    const done = world.run({ since: '2026-01-01T00:00:00Z' });
    await passes(0);
    expect(world.told).toEqual([{ seq: 0, lines: [] }]);
    expect(world.queries).toEqual([{ tail: 100, since: '2026-01-01T00:00:00Z', follow: true, terminal: false }]);
    await world.write('a');
    await passes(150);
    await world.write('b');
    expect(world.told).toHaveLength(1);
    await passes(50);
    await world.write('c');
    world.containers = [container({ running: false })];
    await world.end();
    await done;
    expect(world.told.slice(1)).toEqual([
      { seq: 0, lines: [line('a'), line('b')] },
      { seq: 2, lines: [line('c')] },
      { seq: 3, end: 'stopped', truncated: false },
    ]);
  });

  test('lines that come all the time are told as soon as if they came alone', async () => {
    void world.run();
    for (let count = 0; count < 25; count += 1) {
      await world.write(String(count));
      await passes(10);
    }
    expect(texts().length).toBeGreaterThanOrEqual(20);
    world.ending.abort('complete');
  });

  test('gives a sign of life while nothing is written, and ends when nobody takes it', async () => {
    const done = world.run();
    await passes(13_000);
    expect(world.told).toEqual(Array.from({ length: 4 }, () => ({ seq: 0, lines: [] })));
    world.reads = false;
    await passes(5_000);
    await done;
    expect(world.told).toHaveLength(4);
  });

  test('ends when nobody takes its lines, and says nothing more', async () => {
    const done = world.run();
    await world.write('a');
    world.reads = false;
    await passes(1_000);
    await done;
    expect(texts()).toEqual([]);
  });

  test('is sent in answers of at most 64 KiB, as JSON, unless one line has more', async () => {
    void world.run();
    const [long, longest] = ['\u0001'.repeat(5_000), '\u0001'.repeat(16_000)];
    await world.write(long, long, longest, long);
    await passes(1_000);
    const sent = world.told.slice(1).flatMap((answer) => ('lines' in answer ? [answer.lines.length] : []));
    expect(sent).toEqual([2, 1, 1]);
    world.ending.abort('complete');
  });

  test.each([
    ['stopped', container({ running: false })],
    ['stopped', container({ startedAt: 'now' })],
    ['stopped', undefined],
    ['daemon_unreachable', container()],
    ['daemon_unreachable', new DaemonError('unreachable', 'away')],
  ] as const)('whose stream ends is %s #%#', async (end, later) => {
    world.containers = [container(), later];
    const done = world.run();
    await world.end();
    await passes(4_000);
    await done;
    expect(world.told.at(-1)).toMatchObject({ end });
  });

  test('whose container is said to have stopped only a moment after its stream has ended is stopped', async () => {
    world.containers = [container(), container(), container(), container({ running: false })];
    const done = world.run();
    await world.end();
    await passes(1_000);
    await done;
    expect(world.told.at(-1)).toMatchObject({ end: 'stopped' });
  });

  test.each([
    ['daemon_unreachable', 'lost'],
    ['unreadable', 'failed'],
  ] as const)('is %s when reading it is %s, after what was read', async (end, kind) => {
    const done = world.run();
    await world.write('a');
    await world.fail(kind);
    await done;
    expect(texts()).toEqual(['a']);
    expect(world.told.at(-1)).toEqual({ seq: 1, end, truncated: false });
  });

  test('ends on request with the reason for that', async () => {
    const done = world.run();
    await passes(0);
    world.ending.abort('time_limit');
    await done;
    expect(world.told.at(-1)).toMatchObject({ end: 'time_limit' });
  });
});

describe('a log that is not followed', () => {
  test('is told whole', async () => {
    const done = world.run({ follow: false });
    await world.write('a', 'b');
    await world.end();
    await done;
    expect(world.told).toEqual([
      { seq: 0, lines: [] },
      { seq: 0, lines: [line('a'), line('b')] },
      { seq: 2, end: 'complete', truncated: false },
    ]);
  });

  test('of more than an answer holds, the last lines are told, and that others were left out', async () => {
    const done = world.run({ follow: false });
    await passes(0);
    for (let count = 0; count < 200; count += 1) await world.write(`${count} ${'x'.repeat(16_000)}`);
    await world.end();
    await done;
    const told = texts();
    expect(told.at(-1)).toMatch(/^199 /);
    expect(told.length).toBe(Math.floor(LOG_ANSWER_MAX_BYTES / 16_075));
    expect(world.told.at(-1)).toEqual({ seq: told.length, end: 'complete', truncated: true });
  });

  test('and that the daemon does not send in time, is not complete', async () => {
    const done = world.run({ follow: false });
    await world.write('a');
    world.ending.abort('daemon_unreachable');
    await done;
    expect(world.told.at(-1)).toMatchObject({ end: 'daemon_unreachable' });
    expect(texts()).toEqual([]);
  });
});

describe('what is refused', () => {
  test.each([
    ['not_found', undefined],
    ['not_found', container({ labels: { ...SERVICE, 'surefoot.kind': 'engine' } })],
    ['not_found', container({ labels: { ...SERVICE, 'surefoot.installation': REQUEST.containerId } })],
    ['daemon_unreachable', new DaemonError('unreachable', 'away')],
    ['daemon_unreachable', new DaemonError('lost', 'silent')],
  ] as const)('%s, without a look into any log #%#', async (code, found) => {
    world.containers = [found];
    await world.run();
    expect(world.told).toEqual([{ seq: 0, refusal: { code, message: expect.any(String) } }]);
    expect(world.queries).toEqual([]);
  });
});
