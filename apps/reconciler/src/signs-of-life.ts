/**
 * What others can see of this process: `run/reconciler.ready` once it runs, and `run/reconciler.passes` with the last end of
 * each pass. Written when a pass has ended and at no other time: a process that answers while its passes hang is not
 * healthy (FIELD-CASES B107).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PassEnd } from './pass-loop.ts';

/** Often enough to be judged by, rarely enough not to matter. */
const WRITE_INTERVAL_MS = 2_000;

export class SignsOfLife {
  readonly #readyFile: string;
  readonly #passesFile: string;
  readonly #ends = new Map<string, PassEnd>();
  #writtenAtMs = 0;

  /** @param folder `run/` of the state folder */
  constructor(folder: string) {
    this.#readyFile = join(folder, 'reconciler.ready');
    this.#passesFile = join(folder, 'reconciler.passes');
  }

  ready(): void {
    write(this.#readyFile, { pid: process.pid, since: new Date().toISOString() });
  }

  ended(end: PassEnd): void {
    const before = this.#ends.get(end.pass);
    this.#ends.set(end.pass, end);
    const now = end.endedAt.getTime();
    if (before?.outcome === end.outcome && now - this.#writtenAtMs < WRITE_INTERVAL_MS) return;
    this.#writtenAtMs = now;
    write(this.#passesFile, { pid: process.pid, passes: [...this.#ends.values()] });
  }

  /** Only what is ours: a successor may have begun already. */
  remove(): void {
    for (const path of [this.#readyFile, this.#passesFile]) if (isOurs(path)) rmSync(path, { force: true });
  }
}

function isOurs(path: string): boolean {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { readonly pid: number }).pid === process.pid;
  } catch {
    return false;
  }
}

/** Readers see one whole content or another. It need not outlive a power cut: neither does the process. */
function write(path: string, content: object): void {
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify(content)}\n`, { mode: 0o600 });
  renameSync(temporary, path);
}
