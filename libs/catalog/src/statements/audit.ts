import type { JsonObject } from '#kernel';
import type { Tx } from '../catalog.ts';

/**
 * One row of the append-only audit. Last in a transaction: the chain's lock is held until it ends.
 * @param actor `key NAME`, `host NAME` or `setup`
 * @param subject id of what was acted on
 */
export async function writeAudit(
  tx: Tx,
  actor: string,
  action: string,
  subject: string,
  detail: JsonObject,
): Promise<void> {
  await tx.query(
    /* sql */ `insert into audit (actor, action, subject, detail, previous_hash, hash) values ($1, $2, $3, $4, '', '')`,
    [actor, action, subject, JSON.stringify(detail)],
  );
}
