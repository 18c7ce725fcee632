/** The outbox: what was committed with its cause, published afterwards, and marked once the broker has confirmed it. */
import type { JsonObject } from '#kernel';
import type { Catalog, Tx } from '../catalog.ts';

export interface OutboxRow {
  readonly id: string;
  readonly exchange: string;
  readonly routing_key: string;
  readonly message: JsonObject;
}

/** Whether a look is worth a transaction: most of the time there is nothing. */
export async function hasOutbox(catalog: Catalog): Promise<boolean> {
  const [row] = await catalog.prepared<{ open: boolean }>(
    'has_outbox',
    /* sql */ `select exists (select 1 from outbox where published_at is null) as open`,
    [],
  );
  return row?.open ?? false;
}

/**
 * The oldest unpublished rows, locked until the transaction ends: a second relay takes others. Selected by "not
 * published", never by "id above the last one", which would skip a row whose transaction commits late.
 * @param except rows that could not be delivered a moment ago, so that they do not stand before all others
 */
export async function takeOutbox(tx: Tx, limit: number, except: readonly string[] = []): Promise<readonly OutboxRow[]> {
  return tx.query<OutboxRow>(
    /* sql */ `select id, exchange, routing_key, message from outbox
                where published_at is null and id <> all ($2::bigint[])
                order by id limit $1 for update skip locked`,
    [limit, except],
  );
}

export async function markPublished(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.query(/* sql */ `update outbox set published_at = now() where id = any ($1::bigint[])`, [ids]);
}
