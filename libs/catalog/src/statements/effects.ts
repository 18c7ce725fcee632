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

const CURRENT = /* sql */ `
  select 1 from claims c join operations o on o.claim_id = c.id
   where c.id = $1 and c.ended_at is null and o.state = 'running' and o.id = c.operation_id
     for share of c`;

const RECORD = /* sql */ `
  with recorded as (
    insert into effects (id, operation_id, claim_id, ordinal, kind, spec)
    select $1, $2, $3, 1 + coalesce((select max(ordinal) from effects where operation_id = $2), 0), $4, $5
    on conflict (id) do nothing),
  staged as (update operations set stage = $4 where id = $2)
  insert into tokens (token, effect_id, engine_id, claim_number, resource) values ($6, $1, $7, $8, $9)
  on conflict (token) do nothing`;

/** Token and effect, before the receipt. `conflict`: the claim is no longer current, so nothing may be done under it. */
export async function recordEffect(tx: Tx, effect: EffectToRecord): Promise<WriteAnswer> {
  if ((await tx.query(CURRENT, [effect.claimId])).length === 0) return 'conflict';
  await tx.query(RECORD, [
    effect.effectId,
    effect.operationId,
    effect.claimId,
    effect.kind,
    JSON.stringify(effect.spec),
    effect.token,
    effect.engineId,
    effect.claimNumber,
    effect.resource,
  ]);
  return 'updated';
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
  with settled as (
    update effects set outcome = $2, facts = $3, reason = $4, settled_at = now()
     where id = $1 and claim_id = $5 and outcome in ('pending', 'unknown')
       and exists (select 1 from tokens t where t.effect_id = $1 and t.token = $6)
    returning operation_id),
  closed as (update tokens set settled_at = now() where token = $6 and exists (select 1 from settled)),
  undone as (
    update effects set outcome = 'undone'
     where operation_id = (select operation_id from settled) and kind = any ($7) and outcome = 'applied' and $2 = 'applied')
  select 1 from settled`;

const IDENTITIES = {
  environment: /* sql */ `update environments set identities = $2 where id = $1 and identities is distinct from $2`,
  engine: /* sql */ `update engines set identities = $2 where id = $1 and identities is distinct from $2`,
} as const;

/** `already`: this effect has an outcome; `conflict`: the claim is no longer current or the token is another. */
export async function settleEffect(tx: Tx, settlement: Settlement): Promise<WriteAnswer> {
  const { effectId, token, claimId, outcome, facts, reason, undoes, identities, subject } = settlement;
  if ((await tx.query(CURRENT, [claimId])).length === 0) return 'conflict';
  const settled = await tx.query(SETTLE, [
    effectId,
    outcome,
    JSON.stringify(facts),
    reason === undefined ? null : JSON.stringify(reason),
    claimId,
    token,
    undoes,
  ]);
  if (settled.length === 0) {
    const [row] = await tx.query<{ outcome: string }>(
      /* sql */ `select e.outcome from effects e join tokens t on t.effect_id = e.id where e.id = $1 and t.token = $2`,
      [effectId, token],
    );
    return row === undefined || row.outcome === 'pending' ? 'conflict' : 'already';
  }
  if (identities !== undefined) await tx.query(IDENTITIES[subject.type], [subject.id, JSON.stringify(identities)]);
  return 'updated';
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
