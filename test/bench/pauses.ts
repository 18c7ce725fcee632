/**
 * The pauses between samples, in which nothing of ours has anything to do: how busy the machine is then, and how long a
 * small durable write takes, is what somebody else had of it during the samples.
 */
import { closeSync, fsyncSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Summary } from './statistics.ts';
import { summarise } from './statistics.ts';

/** What an operation leaves for afterwards (acknowledgement, ended backends, connections made ahead) is over by then. */
const SETTLE_MS = 100;
const LISTEN_MS = 100;
const PAGE = Buffer.alloc(8192, 1);

export class Pauses {
  readonly #file: number;
  readonly #syncsMs: number[] = [];
  #busy = 0;
  #all = 0;

  /** @param folder on the disk that the installation uses */
  constructor(folder: string) {
    const path = join(folder, `surefoot-bench-${process.pid}`);
    this.#file = openSync(path, 'wx', 0o600);
    unlinkSync(path);
  }

  async take(): Promise<void> {
    await setTimeout(SETTLE_MS);
    const before = processorTicks();
    await setTimeout(LISTEN_MS);
    const after = processorTicks();
    this.#busy += after.busy - before.busy;
    this.#all += after.all - before.all;
    const startedAt = performance.now();
    writeSync(this.#file, PAGE, 0, PAGE.length, 0);
    fsyncSync(this.#file);
    this.#syncsMs.push(performance.now() - startedAt);
  }

  close(): void {
    closeSync(this.#file);
  }

  /** `busy`: of all cores, 0 to 1. */
  found(): { readonly busy: number; readonly syncMs: Summary } {
    return { busy: this.#busy / Math.max(this.#all, 1), syncMs: summarise(this.#syncsMs) };
  }
}

/** proc_stat(5), first line: user, nice, system, idle, iowait, irq, softirq, steal. */
function processorTicks(): { readonly busy: number; readonly all: number } {
  const ticks = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/).slice(1, 9).map(Number) ?? [];
  const all = ticks.reduce((sum, count) => sum + count, 0);
  return { busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0), all };
}
