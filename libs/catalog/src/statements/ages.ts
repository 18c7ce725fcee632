/** What the catalog says about the age of a host and of its engines (DESIGN §3, "Age"); libs/protocol compares. */
import { randomUUID } from 'node:crypto';
import type { Reason } from '#kernel';
import type { AgeRecord } from '#protocol';
import type { Tx } from '../catalog.ts';

export interface CatalogAge {
  readonly record: AgeRecord;
  /** The highest claim with an effect settled as applied at that place; 0 for none. */
  readonly settledClaim: number;
}

export async function hostAge(tx: Tx, hostId: string): Promise<CatalogAge> {
  const [row] = await tx.query<{ identity: string; claim_number: string; settled: string | null }>(
    /* sql */ `select h.identity, h.claim_number,
                      (select c.claim_number from claims c
                        where c.host_id = h.id
                          and exists (select 1 from effects e where e.claim_id = c.id and e.settled_at is not null and e.outcome <> 'absent')
                        order by c.claim_number desc limit 1) as settled
                 from hosts h where h.id = $1`,
    [hostId],
  );
  if (row === undefined) throw new TypeError(`the catalog has no host ${hostId}`);
  return {
    record: { identity: row.identity, claimNumber: Number(row.claim_number) },
    settledClaim: Number(row.settled ?? 0),
  };
}

/**
 * @param kinds effect kinds that register their token at the engine: only they leave a trace of their claim there
 */
export async function engineAge(tx: Tx, engineId: string, kinds: readonly string[]): Promise<CatalogAge> {
  const [row] = await tx.query<{ identity: string; claim_number: string; settled: string | null }>(
    /* sql */ `select e.identity, h.claim_number,
                      (select t.claim_number from tokens t join effects f on f.id = t.effect_id
                        where t.engine_id = e.id and t.settled_at is not null
                          and f.outcome in ('applied', 'undone') and f.kind = any ($2)
                        order by t.claim_number desc limit 1) as settled
                 from engines e join hosts h on h.id = e.host_id where e.id = $1`,
    [engineId, kinds],
  );
  if (row === undefined) throw new TypeError(`the catalog has no engine ${engineId}`);
  return {
    record: { identity: row.identity, claimNumber: Number(row.claim_number) },
    settledClaim: Number(row.settled ?? 0),
  };
}

/** A place that is refused: one open case, and for a host the reason it takes no new work. */
export async function refusePlace(
  tx: Tx,
  place: { readonly hostId: string; readonly engineId?: string },
  reason: Reason,
): Promise<void> {
  await tx.query(
    /* sql */ `insert into cases (id, kind, host_id, engine_id, reason) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [randomUUID(), reason.code, place.hostId, place.engineId ?? null, JSON.stringify(reason)],
  );
  if (place.engineId === undefined)
    await tx.query(/* sql */ `update hosts set refusal = $2 where id = $1 and refusal is distinct from $2`, [
      place.hostId,
      JSON.stringify(reason),
    ]);
}

/** The place is what the catalog expects again: its refusal no longer stands. The case stays on record, closed. */
export async function acceptPlace(
  tx: Tx,
  place: { readonly hostId: string; readonly engineId?: string },
): Promise<void> {
  await tx.query(
    /* sql */ `update cases set closed_at = now()
                where host_id = $1 and engine_id is not distinct from $2 and operation_id is null and closed_at is null`,
    [place.hostId, place.engineId ?? null],
  );
  if (place.engineId === undefined)
    await tx.query(/* sql */ `update hosts set refusal = null where id = $1 and refusal is not null`, [place.hostId]);
}
