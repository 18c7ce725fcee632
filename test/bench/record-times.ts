/**
 * When each receipt and witness appeared, as the kernel tells: the only mark between "recorded" and "acted" that does not
 * ask the worker to measure itself.
 */
import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';
import { basename } from 'node:path';

export class RecordTimes {
  readonly #watchers: readonly FSWatcher[];
  readonly #receipts = new Map<string, number>();
  readonly #witnesses = new Map<string, number>();

  constructor(folders: { readonly receipts: string; readonly witnesses: string }) {
    this.#watchers = [first(folders.receipts, this.#receipts), first(folders.witnesses, this.#witnesses)];
  }

  /** Milliseconds since the epoch, with fractions; undefined when it was not seen. */
  receiptAt(effectId: string): number | undefined {
    return this.#receipts.get(effectId);
  }

  witnessAt(effectId: string): number | undefined {
    return this.#witnesses.get(effectId);
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
  }
}

/** A record's name appears when it is published and again when it is consumed: the first time counts. */
function first(folder: string, times: Map<string, number>): FSWatcher {
  return watch(folder, (_event, name) => {
    if (name === null || name.startsWith('.')) return;
    const effectId = basename(name, '.json');
    if (!times.has(effectId)) times.set(effectId, performance.timeOrigin + performance.now());
  });
}
