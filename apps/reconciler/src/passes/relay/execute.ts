/**
 * The relay: what was committed to the outbox is published, and marked.
 *
 * - A row is marked in the transaction that holds its lock, after the broker has confirmed it. A crash in between publishes
 *   it again, which costs a read; it never loses one (FIELD-CASES B094).
 * - Rows are found by "not published". Several relays work side by side, each on rows the others have not locked.
 * - No row is locked before there is a channel, and none longer than the publisher's deadline.
 */
import type { Publisher } from '#broker';
import { hasOutbox, markPublished, takeOutbox, type Catalog } from '#catalog';
import type { Logger } from '#kernel';
import type { Pass } from '../../pass.ts';
import { Parked, PARKED_MAX } from './parked.ts';
import { planMarks, toMessages, type Marks } from './plan.ts';

const INTERVAL_MS = 1_000;
const BATCH = 100;

export interface RelayParts {
  readonly catalog: Catalog;
  readonly publisher: Pick<Publisher, 'connect' | 'publish'>;
  readonly logger: Logger;
}

export function relayPass(parts: RelayParts): Pass {
  const parked = new Parked(parts.logger);
  return { name: 'relay', intervalMs: INTERVAL_MS, run: () => relay(parts, parked) };
}

/** Publishes what is open, batch by batch. @throws when catalog or broker do not answer */
async function relay(parts: RelayParts, parked: Parked): Promise<void> {
  // Also when there is nothing: a broker that is away is to be known before a job waits for it.
  await parts.publisher.connect();
  if (!(await hasOutbox(parts.catalog))) return;
  for (let except = parked.waiting; except.length < PARKED_MAX; except = parked.waiting) {
    const { taken, marks } = await relayBatch(parts, except);
    parked.note(marks);
    if (marks.published.length > 0) parts.logger.info('outbox published', { published: marks.published.length });
    if (taken < BATCH) return;
  }
}

async function relayBatch({ catalog, publisher }: RelayParts, except: readonly string[]): Promise<Batch> {
  return catalog.transaction(async (tx) => {
    const rows = await takeOutbox(tx, BATCH, except);
    if (rows.length === 0) return { taken: 0, marks: { published: [], undelivered: [] } };
    const marks = planMarks(rows, await publisher.publish(toMessages(rows)));
    if (marks.published.length > 0) await markPublished(tx, marks.published);
    return { taken: rows.length, marks };
  });
}

interface Batch {
  readonly taken: number;
  readonly marks: Marks;
}
