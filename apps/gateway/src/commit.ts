/** Writes on behalf of somebody who waits. */
import { setTimeout } from 'node:timers/promises';
import { CatalogFateUnknown, type CatalogSource, CatalogUnavailable, type Tx } from '#catalog';

/** No new try is begun after this long; the last one ends by the patience of the connection (see catalog-link.ts). */
const TRY_FOR_MS = 2_000;
const PAUSE_MS = 100;

/**
 * Repeats a transaction that the catalog has lost, also when it cannot say what became of it. So `work` must answer for its
 * own repetition: every id in it, or its idempotency key, was made before.
 */
export async function commit<T>(source: CatalogSource, work: (tx: Tx) => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + TRY_FOR_MS;
  for (;;) {
    try {
      return await source.catalog.transaction(work);
    } catch (error) {
      const lost = error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown;
      if (!lost || performance.now() > giveUpAt) throw error;
    }
    await setTimeout(PAUSE_MS);
  }
}
