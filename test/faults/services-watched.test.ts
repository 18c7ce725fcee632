/** Services that end, that are taken away, or that stop with their host: what is shown, and what comes back by itself. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EnvironmentView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const env = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST'), SUREFOOT_HOME: installation.home };
const image = installation.setting('SUREFOOT_ENGINE_IMAGE');
const tag = Date.now().toString(36);
/** It ends when it is told to, with the code that it is told. */
const SCRIPT = 'trap "exit 7" TERM INT; while :; do sleep 0.2; done';

interface Watched extends EnvironmentView {
  readonly reason: { readonly code: string; readonly message: string } | null;
  readonly lastObservedAt: string;
  readonly services: readonly {
    readonly name: string;
    readonly state: string;
    readonly exitCode?: number;
    readonly ports: readonly { readonly container: number; readonly host: number }[];
  }[];
}

let id: string;
const look = async (): Promise<Watched> => (await installation.environment(id)) as Watched;
const docker = async (...args: readonly string[]): Promise<string> =>
  (await run('docker', args, { env })).stdout.trim();
const containerOf = (service: string): Promise<string> =>
  docker(
    ...['ps', '-a', '-q', '--no-trunc', '--filter', `label=surefoot.environment=${id}`],
    ...['--filter', `label=surefoot.service=${service}`],
  );

async function untilState(state: string, code?: string): Promise<Watched> {
  let last: Watched | undefined;
  return waitUntil(
    `the environment is ${state}`,
    async () => {
      last = await look();
      return last.state === state && last.reason?.code === code && last;
    },
    { deadlineMs: 60_000, intervalMs: 100 },
  ).catch((error: unknown) => {
    throw new Error(`it is ${last?.state}, ${JSON.stringify(last?.reason)}`, { cause: error });
  });
}

beforeAll(async () => {
  const services = ['one', 'two'].map((name) => ({ name, image, command: ['bash', '-c', SCRIPT], ports: [8080] }));
  ({ id } = await installation.ready(`watched-${tag}`, { services }));
}, 60_000);
afterAll(async () => {
  await installation.ended((await installation.remove(id)).id);
  expect(await docker('ps', '-a', '-q', '--filter', `label=surefoot.environment=${id}`)).toBe('');
}, 60_000);

test('a service that is stopped makes the environment degraded with the reason, and started again it is ready', async () => {
  const one = await containerOf('one');
  await docker('stop', one);
  const degraded = await untilState('degraded', 'service_exited');
  expect(degraded.reason?.message).toMatch(/^service one ended with exit code 7 at /);
  expect(degraded.services).toMatchObject([
    { name: 'one', state: 'exited' },
    { name: 'two', state: 'running' },
  ]);
  // Stopped on purpose: nobody starts it.
  expect(await docker('inspect', '-f', '{{.State.Running}}', one)).toBe('false');
  await docker('start', one);
  await untilState('ready');
});

test('one that ends by itself is started by the daemon, shown as restarted for a while, and then holds again', async () => {
  const two = await containerOf('two');
  await docker('exec', '-u', '0', two, 'bash', '-c', 'kill -TERM $(pgrep -o -f while || echo 1)').catch(
    () => undefined,
  );
  const degraded = await waitUntil(
    'it is degraded',
    async () => {
      const now = await look();
      return now.state === 'degraded' && now;
    },
    { deadlineMs: 20_000, intervalMs: 50 },
  );
  expect(degraded.reason?.code).toMatch(/^service_(exited|restarting|restarted)$/);
  const settled = await untilState('ready');
  expect(settled.services[1]).toMatchObject({ state: 'running' });
}, 90_000);

test('B072: the daemon and the containers end, as with the machine: the same ones are started again, and nothing is made anew', async () => {
  const pidFile = join('/run/surefoot', installation.setting('SUREFOOT_INSTALLATION').slice(0, 8), 'dockerd.pid');
  // The machine's own daemon is not ours to end.
  if (!existsSync(pidFile)) return;
  const inspect = async (): Promise<readonly string[]> => {
    const containers = await Promise.all([containerOf('one'), containerOf('two')]);
    return (await docker('inspect', '-f', '{{.Id}} {{.State.Pid}} {{.State.StartedAt}}', ...containers)).split('\n');
  };
  const before = await inspect();
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
  // A daemon that is killed leaves its containers running; a machine that goes down does not.
  for (const one of before) process.kill(Number(one.split(' ')[1]), 'SIGKILL');
  await run('node', ['deploy/local/start.mjs'], { env, timeout: 120_000 });
  const after = await waitUntil(
    'both run again',
    async () => {
      const now = await inspect();
      return (
        now.every((one, index) => !one.includes(' 0 ') && one.split(' ')[2] !== before[index]?.split(' ')[2]) && now
      );
    },
    { deadlineMs: 60_000 },
  );
  expect(after.map((one) => one.split(' ')[0])).toEqual(before.map((one) => one.split(' ')[0]));
  // What has just been started again has to show first that it stays, if anybody looks while it does.
  expect(['degraded', 'ready']).toContain((await look()).state);
  await untilState('ready');
}, 200_000);

describe('stopped with the whole installation', () => {
  let before: Watched;
  beforeAll(async () => {
    before = await look();
    await run('node', ['deploy/local/stop.mjs'], { env, timeout: 150_000 });
    await run('node', ['deploy/local/start.mjs'], { env, timeout: 150_000 });
  }, 300_000);

  test('the same containers are started again by an operation, at the same addresses', async () => {
    const after = await untilState('ready');
    expect(after.services.map(({ ports }) => ports)).toEqual(before.services.map(({ ports }) => ports));
    const { body } = await installation.request<{ items: readonly { kind: string; state: string }[] }>(
      'GET',
      `/v1/operations?environment=${id}`,
    );
    expect(body.items[0]).toMatchObject({ kind: 'environment.start', state: 'succeeded' });
  }, 90_000);
});

test('a container that somebody removes is missing, and nobody makes another in its place', async () => {
  await docker('rm', '-f', await containerOf('one'));
  const degraded = await untilState('degraded', 'service_missing');
  expect(degraded.services).toMatchObject([
    { name: 'one', state: 'missing' },
    { name: 'two', state: 'running' },
  ]);
  expect(await containerOf('one')).toBe('');
});
