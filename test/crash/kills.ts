/** What tests that kill the worker have in common: how it is killed and started again, what it had in hand, and the table. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { InstallationUnderTest, OperationView } from '#testing';
import { waitUntil } from '#testing';

const run = promisify(execFile);

/** mulberry32: small, and the same everywhere. */
export function random(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export async function npmStart({ home }: InstallationUnderTest): Promise<void> {
  await run('node', ['deploy/local/start.mjs'], {
    env: { ...process.env, SUREFOOT_HOME: home },
    timeout: 120_000,
  });
}

export async function killWorker({ home }: InstallationUnderTest): Promise<void> {
  const pid = Number(readFileSync(join(home, 'run', 'worker.pid'), 'utf8'));
  process.kill(pid, 'SIGKILL');
  await waitUntil('the worker is gone', () => hasEnded(pid), { intervalMs: 5 });
}

export function hasEnded(pid: number): boolean {
  try {
    // A zombie has ended: it only waits for its parent.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

export interface ReceiptOnDisk {
  readonly effectId: string;
  readonly kind: string;
  readonly operationId: string;
}

/** Only the worker publishes and consumes them: as long as none runs, they are what was in hand when it was killed. */
export function receipts({ home }: InstallationUnderTest): readonly ReceiptOnDisk[] {
  const folder = join(home, 'host', 'receipts');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { record: ReceiptOnDisk }).record);
}

export function hasWitness({ home }: InstallationUnderTest, effectId: string): boolean {
  return existsSync(join(home, 'host', 'witnesses', `${effectId}.json`));
}

/** How the kills ended, by the effect that was in hand, the worst kind first. */
export function table(
  title: string,
  inHand: readonly ReceiptOnDisk[],
  left: ReadonlySet<string>,
  ended: readonly OperationView[],
): string {
  const rows = [...new Set(inHand.map(({ kind }) => kind))].map((kind) => {
    const ofKind = inHand.filter((receipt) => receipt.kind === kind);
    const blocked = ofKind.filter(({ effectId }) => left.has(effectId)).length;
    return { kind, inHand: ofKind.length, settled: ofKind.length - blocked, blocked };
  });
  rows.sort((one, other) => other.blocked / other.inHand - one.blocked / one.inHand);
  const count = (state: string): number => ended.filter((operation) => operation.state === state).length;
  const line = (...cells: readonly (string | number)[]): string =>
    `${cells.map((cell, index) => (index === 0 ? String(cell).padEnd(18) : String(cell).padStart(8))).join('')}\n`;
  return [
    `${title}; ${ended.length} operations: ${count('succeeded')} succeeded, ${count('blocked')} blocked\n`,
    line('effect in hand', 'kills', 'settled', 'blocked'),
    ...rows.map(({ kind, inHand: kills, settled, blocked }) => line(kind, kills, settled, blocked)),
  ].join('');
}
