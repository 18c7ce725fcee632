/** Ways in which the worker's processes end, other than all at once. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { InstallationUnderTest, waitUntil } from '#testing';

const installation = new InstallationUnderTest();
const tag = Date.now().toString(36);

function npmStart(): void {
  execFileSync('node', ['deploy/local/start.mjs'], {
    env: { ...process.env, SUREFOOT_HOME: installation.home },
    timeout: 120_000,
  });
}

const workerPid = (): number => Number(readFileSync(join(installation.home, 'run', 'worker.pid'), 'utf8'));

/** The one child of a process that runs a program of ours. */
function child(parent: number, program: string): number {
  const found = children(parent, program);
  if (found.length !== 1) throw new Error(`process ${parent} has ${found.length} of ${program}, not one`);
  return found[0]!;
}

function children(parent: number, program: string): readonly number[] {
  const pids = readdirSync('/proc').filter((pid) => {
    try {
      // Field 4 of stat is the parent; the name before it may hold anything, so what follows its last bracket is read.
      const [, ppid] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return Number(ppid) === parent && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${program}.js`);
    } catch {
      return false;
    }
  });
  return pids.map(Number);
}

function isAlive(pid: number): boolean {
  try {
    // A zombie has ended: it only waits for its parent.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

afterEach(() => npmStart());

test('B091: a worker that is asked to stop in mid-operation settles the effect in hand, and the operation counts no interruption', async () => {
  const worker = workerPid();
  const guardian = child(worker, 'guardian');
  const create = await installation.create(`stopped-${tag}`);
  await waitUntil('an effect is at work', async () => (await installation.operation(create.id)).effects.length > 0, {
    intervalMs: 5,
  });
  const askedAt = Date.now();
  process.kill(worker, 'SIGTERM');
  await waitUntil('the worker has ended', () => !isAlive(worker), { deadlineMs: 7_000 });
  expect(Date.now() - askedAt).toBeLessThan(7_000);
  expect(isAlive(guardian)).toBe(false);
  npmStart();
  const ended = await installation.ended(create.id);
  expect(ended.state).toBe('succeeded');
  const catalog = await installation.catalog();
  const { rows } = await catalog.query(
    'select preflight_interruptions, stalled_resumes from operations where id = $1',
    [create.id],
  );
  await catalog.end();
  expect(rows).toEqual([{ preflight_interruptions: 0, stalled_resumes: 0 }]);
}, 120_000);

test('guardian and runner are gone at once when the worker is killed, and the next worker gets the lock', async () => {
  const worker = workerPid();
  const guardian = child(worker, 'guardian');
  const runner = child(guardian, 'runner');
  process.kill(worker, 'SIGKILL');
  await waitUntil('both are gone', () => !isAlive(guardian) && !isAlive(runner), { deadlineMs: 2_000 });
  npmStart();
  expect(workerPid()).not.toBe(worker);
  const environment = await installation.ready(`after-kill-${tag}`);
  await installation.ended((await installation.remove(environment.id)).id);
}, 120_000);

test('a second worker of the same host is refused the lock, and told who holds it', async () => {
  const node = readFileSync(`/proc/${workerPid()}/cmdline`, 'utf8').split('\0')[0]!;
  const second = spawn(node, ['dist/apps/worker/src/main.js'], {
    env: { PATH: process.env['PATH'], SUREFOOT_HOME: installation.home },
  });
  let said = '';
  second.stdout.on('data', (data) => (said += String(data)));
  const [code] = (await once(second, 'exit')) as [number | null];
  expect(code).toBe(3);
  expect(said).toContain('lock_busy');
  expect(said).toContain(`pid ${workerPid()}`);
}, 60_000);

test('B034: a receipt that cannot be written ends the worker, nothing is started, and the operation goes on after the cure', async () => {
  const worker = workerPid();
  const receipts = join(installation.home, 'host', 'receipts');
  renameSync(receipts, `${receipts}.aside`);
  const create = await installation.create(`no-receipt-${tag}`);
  try {
    await waitUntil('the worker has ended', () => !isAlive(worker));
  } finally {
    renameSync(`${receipts}.aside`, receipts);
  }
  // The effect was recorded; without its receipt it was never started.
  const administrator = await installation.administrator();
  const { rows } = await administrator.query('select 1 from pg_roles where rolname like $1', [`no-receipt-${tag}%`]);
  await administrator.end();
  expect(rows).toEqual([]);
  npmStart();
  const ended = await installation.ended(create.id);
  expect(ended.state).toBe('succeeded');
  expect(ended.effects[0]).toMatchObject({ kind: 'roles', outcome: 'absent' });
  await installation.ended((await installation.remove(ended.environmentId ?? '')).id);
}, 120_000);

test.each(['guardian', 'runner'] as const)(
  'a %s that is killed in mid-operation is replaced: the operation ends or blocks with a case, and the next one works',
  async (which) => {
    const worker = workerPid();
    const guardian = child(worker, 'guardian');
    const victim = which === 'guardian' ? guardian : child(guardian, 'runner');
    const create = await installation.create(`no-${which}-${tag}`);
    await waitUntil('an effect is at work', async () => (await installation.operation(create.id)).effects.length > 1, {
      intervalMs: 5,
    });
    process.kill(victim, 'SIGKILL');
    const ended = await installation.ended(create.id);
    expect(['succeeded', 'blocked']).toContain(ended.state);
    if (ended.state === 'blocked') expect(ended.reason?.code).toBe('outcome_unknown');
    expect(workerPid()).toBe(worker);
    // One pair, not two: each could act.
    await waitUntil('the pair is complete', () => children(worker, 'guardian').length === 1);
    await waitUntil('the runner is there', () => children(child(worker, 'guardian'), 'runner').length === 1);
    const environment = await installation.ready(`after-${which}-${tag}`);
    await installation.ended((await installation.remove(environment.id)).id);
  },
  120_000,
);
