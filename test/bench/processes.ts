/** Our processes on this machine: who they are, what memory they take, and a worker that is stopped and started again. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, openSync, closeSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Settings } from '#settings';

const NAMES = ['gateway', 'worker', 'reconciler'] as const;

/** Proportional set size of all of them in MB: a page that several processes map counts in parts. */
export function memoryMb(settings: Settings): ReadonlyMap<string, number> {
  const pids = new Map<string, number>(NAMES.map((name) => [name, pidOf(settings, name)]));
  const [guardian] = childrenOf(pids.get('worker') ?? 0);
  if (guardian === undefined) throw new Error('the worker has no guardian');
  const [runner] = childrenOf(guardian);
  if (runner === undefined) throw new Error('the guardian has no runner');
  pids.set('guardian', guardian).set('runner', runner);
  return new Map([...pids].map(([name, pid]) => [name, proportionalMb(pid)]));
}

export function proportionalMb(pid: number): number {
  const found = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
  if (found?.[1] === undefined) throw new Error(`/proc/${pid}/smaps_rollup tells no Pss`);
  return Number(found[1]) / 1024;
}

function pidOf({ paths }: Settings, name: string): number {
  return Number(readFileSync(join(paths.run, `${name}.pid`), 'utf8'));
}

function childrenOf(parent: number): readonly number[] {
  return readdirSync(`/proc/${parent}/task`).flatMap((thread) =>
    readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

const READY_DEADLINE_MS = 60_000;
/** As long as the set-up waits. */
const STOP_DEADLINE_MS = 30_000;

/**
 * Stops the worker and starts it again, over and over.
 * @returns milliseconds from each start of the program until it says that it is ready
 */
export async function restartWorker(settings: Settings, times: number): Promise<readonly number[]> {
  const samples: number[] = [];
  let pid = pidOf(settings, 'worker');
  const command = commandOf(pid);
  const ready = join(settings.paths.run, 'worker.ready');
  for (let time = 0; time < times; time += 1) {
    await stop(pid);
    const startedAt = performance.now();
    const worker = start(settings, command);
    pid = worker.pid;
    try {
      await until(() => isReady(ready, pid), 'the worker is not ready', READY_DEADLINE_MS);
      samples.push(performance.now() - startedAt);
      // The set-up knows nothing of this one, and starts its own.
      if (time === times - 1) await stop(pid);
    } catch (error) {
      worker.kill('SIGKILL');
      throw error;
    }
  }
  return samples;
}

/** Program and arguments of a process, as the set-up gave them. */
function commandOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0$/, '').split('\0');
}

/** Like the set-up does it. */
function start({ home, paths }: Settings, command: readonly string[]): ChildProcess & { readonly pid: number } {
  const { PATH, HOME, TZ, LANG, XDG_RUNTIME_DIR } = process.env;
  const log = openSync(join(paths.log, 'worker.log'), 'a', 0o600);
  const child = spawn(command[0] ?? process.execPath, command.slice(1), {
    cwd: home,
    detached: true,
    env: { PATH, HOME, TZ, LANG, XDG_RUNTIME_DIR, SUREFOOT_HOME: home },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error('the worker could not be started');
  return Object.assign(child, { pid });
}

async function stop(pid: number): Promise<void> {
  process.kill(pid, 'SIGTERM');
  await until(() => hasEnded(pid), 'the worker does not stop', STOP_DEADLINE_MS);
}

/** A process that has ended stays a zombie until its parent has noticed. */
export function hasEnded(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

function isReady(file: string, pid: number): boolean {
  if (!existsSync(file)) return false;
  return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid === pid;
}

async function until(condition: () => boolean, otherwise: string, deadlineMs: number): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > giveUpAt) throw new Error(`${otherwise} after ${deadlineMs / 1000} s`);
    await setTimeout(2);
  }
}
