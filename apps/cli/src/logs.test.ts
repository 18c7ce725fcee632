import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { problem, ScriptedGateway } from '#testing';
import { runProgram } from './program.ts';

const ID = '9b98e2ec-29e0-4809-b9e9-471b2bac817f';
const ENVIRONMENT = `GET /v1/environments/${ID}`;
const LOGS = `${ENVIRONMENT}/services/api/logs`;
const AT = '2026-01-01T00:00:00.000000001Z';

let gateway: ScriptedGateway;
let out: string[];
let err: string[];

beforeEach(async () => {
  gateway = await ScriptedGateway.start();
  out = [];
  err = [];
  has('api');
});
afterEach(() => gateway.close());

function has(...services: readonly string[]): void {
  const body = { id: ID, name: 'pr-1', state: 'ready', services: services.map((name) => ({ name })) };
  gateway.answer(ENVIRONMENT, { body });
}

async function run(...args: readonly string[]): Promise<number> {
  const terminal = {
    columns: undefined,
    stdinIsTerminal: false,
    out: (text: string): void => void out.push(text),
    err: (text: string): void => void err.push(text),
    status: () => undefined,
    input: async () => '',
    confirm: async () => false,
  };
  return runProgram(['env', 'logs', ID, ...args], terminal, gateway.env);
}

function line(text: string, more: object = {}): object {
  return { at: AT, stream: 'stdout', text, ...more };
}

function events(...named: readonly (readonly [string, object])[]): string {
  return named.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(':\n\n');
}

describe('what has been written', () => {
  test('is printed line by line; the service may be left out where there is one', async () => {
    gateway.answer(`${LOGS}?tail=100`, { body: { items: [line('one'), line('two')], truncated: false } });
    expect(await run()).toBe(0);
    expect(await run('api')).toBe(0);
    expect(out).toEqual(['one', 'two', 'one', 'two']);
    expect(err).toEqual([]);
  });

  test('of several services one is named, and of none there is nothing', async () => {
    has('api', 'worker');
    expect(await run()).toBe(2);
    expect(err.join()).toContain('api, worker');
    has();
    expect(await run()).toBe(3);
  });

  test('never commands the terminal; a tab is a tab', async () => {
    const text = '\u001b[2J\ta\rb\u009b1m\u202e\u0007\u2028';
    gateway.answer(`${LOGS}?tail=100`, { body: { items: [line(text)], truncated: false } });
    expect(await run()).toBe(0);
    expect(out).toEqual(['\\u{1b}[2J\ta\\u{d}b\\u{9b}1m\\u{202e}\\u{7}\\u{2028}']);
    expect(await run('--json')).toBe(0);
    expect(out[1]).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(out[1] ?? '')).toEqual(line(text));
  });

  test('is told with --json as one object per line, letters beyond the first plane included', async () => {
    const items = [line('🐘', { cut: true }), line('\u{e0001}', { stream: 'stderr' })];
    gateway.answer(`${LOGS}?tail=100`, { body: { items, truncated: true } });
    expect(await run('--json')).toBe(0);
    expect(out.map((text) => JSON.parse(text) as object)).toEqual(items);
    expect(err.map((text) => JSON.parse(text) as object)).toMatchObject([{ code: 'truncated' }]);
  });

  test('and left out, or cut, is said to be', async () => {
    gateway.answer(`${LOGS}?tail=2`, { body: { items: [line('x', { cut: true })], truncated: true } });
    expect(await run('--tail', '2')).toBe(0);
    expect(out).toEqual(['x … (cut)']);
    expect(err).toEqual(['… older lines were left out: one answer holds at most 1 MiB']);
  });

  test('since a time, or for a while', async () => {
    await run('--since', AT);
    const before = Date.now();
    await run('--since', '10m');
    const [exact, relative] = gateway.asked
      .filter(({ call }) => call.includes('logs'))
      .map(({ call }) => new URL(call.slice(4), 'http://x').searchParams.get('since'));
    expect(exact).toBe(AT);
    expect(Math.abs(Date.parse(relative ?? '') - (before - 600_000))).toBeLessThan(5_000);
  });

  test.each([
    ['--since', 'yesterday'],
    ['--since', '10'],
    ['--tail', '10001'],
    ['--tail', '-1'],
    ['--tail', 'all'],
  ])('%s %s is a usage error', async (option, value) => {
    expect(await run(`${option}=${value}`)).toBe(2);
    expect(gateway.asked).toEqual([]);
  });

  test.each([
    ['not_found', 3],
    ['rate_limited', 3],
    ['host_unavailable', 5],
    ['daemon_unreachable', 5],
  ])('that is refused as %s exits with %d', async (code, exit) => {
    gateway.answer(`${LOGS}?tail=100`, { status: 400, body: problem(code) });
    gateway.answer(`${LOGS}?tail=100&follow=true`, { status: 400, body: problem(code) });
    expect(await run()).toBe(exit);
    expect(await run('--follow')).toBe(exit);
    expect(out).toEqual([]);
  });
});

describe('what is followed', () => {
  test('is printed as it comes, with what is missing, and why it ended', async () => {
    const text = events(
      ['line', line('one')],
      ['gap', { missing: 5 }],
      ['line', line('two')],
      ['end', { reason: 'stopped', truncated: false }],
    );
    gateway.answer(`${LOGS}?tail=0&follow=true`, { text });
    expect(await run('-f', '--tail', '0')).toBe(0);
    expect(out).toEqual(['one', 'two']);
    expect(err).toEqual([
      '… 5 lines are missing here: they came faster than they were read',
      `the container has stopped; it may be started again; to go on: the same command with --since ${AT}`,
    ]);
    expect(gateway.asked.at(-1)?.headers.accept).toBe('text/event-stream');
    expect(await run('-f', '--tail', '0', '--json')).toBe(0);
    expect(err.slice(2).map((note) => JSON.parse(note) as object)).toMatchObject([{ code: 'lines_missing', lines: 5 }]);
  });

  test.each([
    ['time_limit', 6],
    ['daemon_unreachable', 5],
    ['host_unavailable', 5],
    ['gateway_stopping', 5],
    ['unreadable', 1],
    ['of another version', 1],
  ])('and ends for %s exits with %d, and says from where to go on', async (reason, exit) => {
    gateway.answer(`${LOGS}?tail=100&follow=true`, { text: events(['line', line('one')], ['end', { reason }]) });
    expect(await run('--follow')).toBe(exit);
    expect(err.at(-1)).toContain(`--since ${AT}`);
  });

  test('and breaks off, has not ended', async () => {
    gateway.answer(`${LOGS}?tail=100&follow=true`, { text: events(['line', line('one')]) }, 'drop');
    expect(await run('--follow')).toBe(5);
    expect(out).toEqual(['one']);
    expect(await run('--follow')).toBe(5);
  });
});
