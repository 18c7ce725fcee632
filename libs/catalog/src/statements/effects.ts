/** Recording and settling effects: both ends of the protocol in the catalog (DESIGN §3, 3). */
import type { JsonObject, Reason, SettledOutcome, WriteAnswer } from '#kernel';
import type { EffectKind, Identities } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { EffectRow } from '../rows.ts';

export interface EffectToRecord {
  readonly effectId: string;
  readonly token: string;
  readonly operationId: string;
  readonly claimId: string;
  readonly claimNumber: number;
  readonly engineId: string;
  readonly kind: EffectKind;
  /** Holds no secret. */
  readonly spec: JsonObject;
  readonly resource: string;
}

/** The claim that may write: live, and its operation running under it. Locked, so that it stays so until the commit. */
const CURRENT = /* sql */ `
  current as (
    select c.id from claims c join operations o on o.claim_id = c.id
     where c.id = $1 and c.ended_at is null and o.state = 'running' and o.id = c.operation_id
       for share of c)`;

const RECORD = /* sql */ `
  with ${CURRENT},
  recorded as (
    insert into effects (id, operation_id, claim_id, ordinal, kind, spec)
    select $2, $3, $1, 1 + coalesce((select max(ordinal) from effects where operation_id = $3), 0), $4, $5 from current
    on conflict (id) do nothing),
  staged as (update operations set stage = $4, progress = null where id = $3 and exists (select 1 from current)),
  token as (
    insert into tokens (token, effect_id, engine_id, claim_number, resource) select $6, $2, $7, $8, $9 from current
    on conflict (token) do nothing)
  select (select kind from effects where id = $2) as before from current`;

/**
 * Token and effect, before the receipt. `already`: this very effect is recorded; `conflict`: nothing may be done under these
 * ids, because the claim is no longer current, or because a first try of the transaction has recorded another step than
 * the plan says now.
 */
export async function recordEffect(tx: Tx, effect: EffectToRecord): Promise<WriteAnswer> {
  const [current] = await tx.query<{ before: string | null }>(RECORD, [
    effect.claimId,
    effect.effectId,
    effect.operationId,
    effect.kind,
    JSON.stringify(effect.spec),
    effect.token,
    effect.engineId,
    effect.claimNumber,
    effect.resource,
  ]);
  if (current === undefined) return 'conflict';
  if (current.before === null) return 'updated';
  return current.before === effect.kind ? 'already' : 'conflict';
}

export interface Settlement {
  readonly effectId: string;
  readonly token: string;
  readonly operationId: string;
  readonly claimId: string;
  readonly outcome: SettledOutcome;
  readonly facts: JsonObject;
  readonly reason?: Reason;
  /** Kinds whose effects in this operation no longer stand. */
  readonly undoes: readonly EffectKind[];
  /** Written to the environment or engine; left out when the effect changed none. */
  readonly identities?: Identities;
  readonly subject: { readonly type: 'environment' | 'engine'; readonly id: string };
}

const SETTLE = /* sql */ `
  with ${CURRENT},
  settled as (
    update effects set outcome = $3, facts = $4, reason = $5, settled_at = now()
     where id = $2 and claim_id = $1 and outcome in ('pending', 'unknown')
       and exists (select 1 from current)
       and exists (select 1 from tokens t where t.effect_id = $2 and t.token = $6)
    returning operation_id),
  closed as (update tokens set settled_at = now() where token = $6 and exists (select 1 from settled)),
  undone as (
    update effects set outcome = 'undone'
     where operation_id = (select operation_id from settled) and kind = any ($7) and outcome = 'applied' and $3 = 'applied'
       and spec ->> 'serviceId' is not distinct from (select e.spec ->> 'serviceId' from effects e where e.id = $2)),
  environment as (
    update environments set identities = $8::jsonb where id = $9 and $8::jsonb is not null and exists (select 1 from settled)),
  engine as (
    update engines set identities = $8::jsonb where id = $9 and $8::jsonb is not null and exists (select 1 from settled))
  select exists (select 1 from settled) as settled from current`;

/** `already`: this effect has an outcome; `conflict`: the claim is no longer current or the token is another. */
export async function settleEffect(tx: Tx, settlement: Settlement): Promise<WriteAnswer> {
  const { effectId, token, claimId, outcome, facts, reason, undoes, identities, subject } = settlement;
  const [current] = await tx.query<{ settled: boolean }>(SETTLE, [
    claimId,
    effectId,
    outcome,
    JSON.stringify(facts),
    reason === undefined ? null : JSON.stringify(reason),
    token,
    undoes,
    identities === undefined ? null : JSON.stringify(identities),
    subject.id,
  ]);
  if (current === undefined) return 'conflict';
  if (!current.settled) {
    const [row] = await tx.query<{ outcome: string }>(
      /* sql */ `select e.outcome from effects e join tokens t on t.effect_id = e.id where e.id = $1 and t.token = $2`,
      [effectId, token],
    );
    return row === undefined || row.outcome === 'pending' ? 'conflict' : 'already';
  }
  return 'updated';
}

/** How far the effect in hand is. Nothing is decided by it. */
export async function noteProgress(tx: Tx, operationId: string, claimId: string, text: string): Promise<void> {
  await tx.query(
    /* sql */ `update operations set progress = $3 where id = $1 and claim_id = $2 and state = 'running'`,
    [operationId, claimId, text],
  );
}

/** What became of an effect, as recovery needs to know it. */
export async function findEffect(tx: Tx, effectId: string): Promise<EffectRow | undefined> {
  const [row] = await tx.query<EffectRow>(
    /* sql */ `select e.*, t.token from effects e join tokens t on t.effect_id = e.id where e.id = $1`,
    [effectId],
  );
  return row;
}

/** Tokens given out under a claim, with what was settled about them. */
export async function tokensOfClaim(
  tx: Tx,
  claimId: string,
): Promise<readonly { readonly token: string; readonly settled: boolean; readonly engineId: string }[]> {
  return tx.query(
    /* sql */ `select t.token, t.settled_at is not null as settled, t.engine_id as "engineId"
                 from tokens t join effects e on e.id = t.effect_id where e.claim_id = $1`,
    [claimId],
  );
}

/**
 * An effect that was recorded and whose receipt never became durable was never started (invariant 1): it is absent. Only
 * for effects of a claim whose worker is proven gone.
 */
export async function settleUnstarted(tx: Tx, claimId: string): Promise<number> {
  const rows = await tx.query(
    /* sql */ `with gone as (
                 update effects set outcome = 'absent', settled_at = now() where claim_id = $1 and outcome = 'pending' returning id)
               update tokens set settled_at = now() where effect_id in (select id from gone) returning token`,
    [claimId],
  );
  return rows.length;
}
