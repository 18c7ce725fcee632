/** The outbox: what was committed with its cause, published afterwards, and marked once the broker has confirmed it. */
import type { JsonObject } from '#kernel';
import type { Tx } from '../catalog.ts';

export interface OutboxRow {
  readonly id: string;
  readonly exchange: string;
  readonly routing_key: string;
  readonly message: JsonObject;
}

/**
 * The oldest unpublished rows, locked until the transaction ends: a second relay takes others. Selected by "not
 * published", never by "id above the last one", which would skip a row whose transaction commits late.
 */
export async function takeOutbox(tx: Tx, limit: number): Promise<readonly OutboxRow[]> {
  return tx.query<OutboxRow>(
    /* sql */ `select id, exchange, routing_key, message from outbox where published_at is null
                order by id limit $1 for update skip locked`,
    [limit],
  );
}

export async function markPublished(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.query(/* sql */ `update outbox set published_at = now() where id = any ($1::bigint[])`, [ids]);
}
