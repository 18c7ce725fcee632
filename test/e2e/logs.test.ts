/** Logs of a service as its developer sees them: on the command line, through gateway, broker and worker. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { LogLine } from '#kernel';
import { type EnvironmentView, InstallationUnderTest, waitUntil } from '#testing';

const installation = new InstallationUnderTest();
const name = `logs-${Date.now().toString(36)}`;
let environment: EnvironmentView;
let following: Run | undefined;

/** `bin/surefoot`, with what it has said so far. */
class Run {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  stdout = '';
  stderr = '';

  constructor(...args: readonly string[]) {
    this.child = spawn(resolve('bin/surefoot'), args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SUREFOOT_HOME: installation.home },
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
  }

  get lines(): readonly string[] {
    return this.stdout.split('\n').slice(0, -1);
  }
}

async function surefoot(...args: readonly string[]): Promise<Run> {
  const run = new Run(...args);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  return run;
}

beforeAll(async () => {
  const script = 'echo "to standard error" >&2; i=0; while :; do echo "tick $((i++))"; sleep 0.1; done';
  const image = installation.setting('SUREFOOT_ENGINE_IMAGE');
  environment = await installation.ready(name, {
    services: [{ name: 'clock', image, command: ['bash', '-c', script] }],
  });
}, 120_000);

afterAll(async () => {
  following?.child.kill();
  const state = (await installation.environment(environment.id)).state;
  if (state !== 'deleted') await installation.ended((await installation.remove(environment.id)).id);
}, 120_000);

test('what a service wrote is shown, from both of its streams, as text and as JSON', async () => {
  const text = await surefoot('env', 'logs', name, '--tail', '10000');
  expect(text.lines.filter((line) => line.startsWith('tick'))).toEqual(
    Array.from({ length: text.lines.length - 1 }, (_, index) => `tick ${index}`),
  );
  expect(text.lines).toContain('to standard error');
  const json = await surefoot('env', 'logs', environment.id, 'clock', '--json', '--tail', '3');
  const lines = json.lines.map((line) => JSON.parse(line) as LogLine);
  expect(lines).toHaveLength(3);
  const later = await surefoot('env', 'logs', name, '--since', lines[1]!.at);
  expect(later.lines.slice(0, 2)).toEqual(lines.slice(1).map((line) => line.text));
});

test('one that is followed goes on while other operations run, and ends with its service', async () => {
  following = new Run('env', 'logs', name, '--follow', '--tail', '1');
  const before = await waitUntil('lines come', () => following!.lines.length >= 3 && following!.lines.length);
  const other = await installation.ready(`${name}-other`);
  expect(following.lines.length).toBeGreaterThan(before);
  await installation.ended((await installation.remove(other.id)).id);
  await installation.ended((await installation.remove(environment.id)).id);
  expect(await following.ended).toBe(0);
  expect(following.stderr).toMatch(/^the container has stopped; it may be started again; .* --since \S+\n$/);
  const [first = 0, ...more] = following.lines.map((line) => Number(line.replace('tick ', '')));
  expect(more).toEqual(more.map((_tick, index) => first + 1 + index));
}, 120_000);
