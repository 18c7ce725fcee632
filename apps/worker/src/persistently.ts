import { setTimeout } from 'node:timers/promises';
import { CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import type { Logger } from '#kernel';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** The worker was asked to stop while it waited. */
export class Stopped extends Error {}

/**
 * Repeats catalog work while the catalog is away. Safe because of what it repeats: every transaction of ours carries its
 * own ids, and a second run of one that had committed is answered `already`.
 * @throws Stopped once `signal` is aborted
 */
export async function persistently<T>(log: Logger, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS, told = false; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const result = await work();
      if (told) log.info('catalog is back');
      return result;
    } catch (error) {
      if (!(error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown)) throw error;
      if (!told) log.warn('waiting for the catalog', { error });
      told = true;
    }
    if (signal.aborted) throw new Stopped('stopped while waiting for the catalog');
    await setTimeout(pauseMs, undefined, { signal }).catch(() => {
      throw new Stopped('stopped while waiting for the catalog');
    });
  }
}
