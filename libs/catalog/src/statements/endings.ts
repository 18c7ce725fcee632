/** How an operation ends, or blocks: state, environment or engine, claim and audit in one transaction (DESIGN §3, 4). */
import { randomUUID } from 'node:crypto';
import type { JsonObject, Reason, WriteAnswer } from '#kernel';
import type { EngineState, EnvironmentState, OperationEvent, Pin } from '#protocol';
import { nextOperationState, OPERATIONS } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { OperationRow } from '../rows.ts';
import { writeAudit } from './audit.ts';
import type { Claim } from './claims.ts';
import { endClaim } from './claims.ts';
import { withoutDelete } from './without-delete.ts';

const END = /* sql */ `
  update operations set state = $3, stage = $3, reason = $4, progress = null, finished_at = case when $3 = 'blocked' then null else now() end
   where id = $1 and claim_id = $2 and state = 'running'
  returning kind, environment_id, engine_id, request,
            exists (select 1 from effects e where e.operation_id = operations.id and e.outcome <> 'absent') as begun`;

interface Ended extends Pick<OperationRow, 'kind' | 'environment_id' | 'engine_id'> {
  readonly request: { readonly previousState?: EnvironmentState };
  readonly begun: boolean;
}

const END_EVENTS = {
  succeeded: 'succeed',
  failed: 'fail',
  cancelled: 'cancel',
  blocked: 'block',
} as const satisfies Record<string, OperationEvent>;

/** What an engine operation that succeeded makes known; absent for environments. */
export interface EngineFinding {
  readonly pinned?: { readonly pin: Pin; readonly extensions: readonly string[] };
  readonly ruleGeneration?: {
    readonly generation: number;
    readonly digest: string;
    readonly profiles: readonly string[];
  };
}

export async function finishOperation(
  tx: Tx,
  claim: Claim,
  state: 'succeeded' | 'failed' | 'cancelled',
  reason: Reason | undefined,
  finding?: EngineFinding,
): Promise<WriteAnswer> {
  const ended = await end(tx, claim, state, reason);
  if (ended === undefined) return (await hasEnded(tx, claim)) ? 'already' : 'conflict';
  const operation = OPERATIONS[ended.kind];
  if (operation.subject === 'environment') {
    const next = await environmentAfter(tx, ended, state, operation.environment[state]);
    const why = next === 'degraded' ? degradation(ended.kind, reason) : undefined;
    if (next !== undefined) await endEnvironment(tx, ended.environment_id ?? '', next, state === 'succeeded', why);
  } else await endEngine(tx, ended.engine_id, operation.engine[state], finding);
  await endClaim(tx, claim.claimId, state);
  await writeAudit(tx, `host ${claim.hostId}`, `operation.${state}`, claim.operationId, auditDetail(claim, reason));
  return 'updated';
}

/** Services that could not be started are the watcher's to judge from then on: its codes begin so. */
function degradation(kind: OperationRow['kind'], reason: Reason | undefined): Reason | undefined {
  return kind === 'environment.start' ? servicesNotStarted(reason) : reason;
}

export function servicesNotStarted(reason: Reason | undefined): Reason {
  return { code: 'service_not_started', message: reason?.message ?? 'its services have not all been started' };
}

/** @returns undefined when what still runs decides */
async function environmentAfter(
  tx: Tx,
  { kind, environment_id: environmentId, request, begun }: Ended,
  state: 'succeeded' | 'failed' | 'cancelled',
  otherwise: EnvironmentState,
): Promise<EnvironmentState | undefined> {
  // A delete that was given up before it did anything has left the environment as it was.
  if (kind === 'environment.delete' && state !== 'succeeded' && !begun)
    return withoutDelete(tx, environmentId ?? '', request.previousState);
  return otherwise;
}

export interface CaseToOpen {
  readonly kind: string;
  readonly effectId?: string;
  readonly evidence: JsonObject;
}

/** The operation waits for a decision; its environment or engine shows that. */
export async function blockOperation(tx: Tx, claim: Claim, reason: Reason, doubt: CaseToOpen): Promise<WriteAnswer> {
  const ended = await end(tx, claim, 'blocked', reason);
  if (ended === undefined) return (await hasEnded(tx, claim)) ? 'already' : 'conflict';
  if (ended.environment_id !== null) await endEnvironment(tx, ended.environment_id, 'blocked', false);
  else await endEngine(tx, ended.engine_id, 'blocked');
  if (doubt.effectId !== undefined)
    await tx.query(/* sql */ `update effects set outcome = 'unknown' where id = $1 and outcome = 'pending'`, [
      doubt.effectId,
    ]);
  await tx.query(OPEN_CASE, [
    randomUUID(),
    doubt.kind,
    claim.hostId,
    ended.engine_id,
    ended.environment_id,
    claim.operationId,
    doubt.effectId ?? null,
    JSON.stringify(reason),
    JSON.stringify(doubt.evidence),
  ]);
  await endClaim(tx, claim.claimId, 'blocked');
  await writeAudit(tx, `host ${claim.hostId}`, 'operation.blocked', claim.operationId, auditDetail(claim, reason));
  return 'updated';
}

const OPEN_CASE = /* sql */ `
  insert into cases (id, kind, host_id, engine_id, environment_id, operation_id, effect_id, reason, evidence)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict do nothing`;

async function end(tx: Tx, claim: Claim, state: keyof typeof END_EVENTS, reason?: Reason): Promise<Ended | undefined> {
  const [row] = await tx.query<Ended>(END, [
    claim.operationId,
    claim.claimId,
    nextOperationState('running', END_EVENTS[state]),
    reason === undefined ? null : JSON.stringify(reason),
  ]);
  return row;
}

async function hasEnded(tx: Tx, claim: Claim): Promise<boolean> {
  return (
    (await tx.query(/* sql */ `select 1 from claims where id = $1 and ended_at is not null`, [claim.claimId])).length >
    0
  );
}

/**
 * A delete that waited for this end takes the environment over: it is `deleting` then, keeps its name, and keeps its
 * secrets until the delete has ended too. Only a block stays visible, since the delete waits for its decision.
 * What has failed stays so until it is deleted: its name is free, and may be another's by now.
 */
const END_ENVIRONMENT = /* sql */ `
  update environments
     set state = case when state = 'failed' and $2 <> 'deleted' then state
           when $2 <> 'blocked' and exists (
           select 1 from operations d where d.environment_id = $1 and d.kind = 'environment.delete' and d.state in ('queued', 'running', 'blocked'))
           then 'deleting' else $2 end,
         -- What is degraded, or becomes so again, keeps its reason until there is another.
         reason = case when $4::jsonb is null and $2 = 'degraded' then reason else $4 end,
         last_observed_at = case when $3 then now() else last_observed_at end
   where id = $1
  returning state`;

export async function endEnvironment(
  tx: Tx,
  id: string,
  state: EnvironmentState,
  observed: boolean,
  reason?: Reason,
): Promise<void> {
  const [ended] = await tx.query<{ state: EnvironmentState }>(END_ENVIRONMENT, [
    id,
    state,
    observed,
    reason === undefined ? null : JSON.stringify(reason),
  ]);
  // What is gone needs no secret any more.
  if (ended?.state === 'deleted' || ended?.state === 'failed') {
    await tx.query(
      /* sql */ `update logins set password_sealed = null, verifier_sealed = null where environment_id = $1`,
      [id],
    );
    await tx.query(
      /* sql */ `delete from service_secrets where service_id in (select id from services where environment_id = $1)`,
      [id],
    );
  }
}

export async function endEngine(tx: Tx, id: string, state: EngineState, finding?: EngineFinding): Promise<void> {
  await tx.query(/* sql */ `update engines set state = $2 where id = $1`, [id, state]);
  if (finding?.pinned !== undefined) await newGeneration(tx, id, finding.pinned);
  if (finding?.ruleGeneration !== undefined) await newRuleGeneration(tx, id, finding.ruleGeneration);
}

async function newGeneration(
  tx: Tx,
  id: string,
  { pin, extensions }: NonNullable<EngineFinding['pinned']>,
): Promise<void> {
  await tx.query(
    /* sql */ `with next as (
                 insert into engine_generations (engine_id, generation, pin)
                 select id, coalesce(generation, 0) + 1, $2 from engines where id = $1
                 returning generation)
               update engines set generation = (select generation from next), extensions = $3 where id = $1`,
    [id, JSON.stringify(pin), extensions],
  );
}

async function newRuleGeneration(
  tx: Tx,
  id: string,
  { generation, digest, profiles }: NonNullable<EngineFinding['ruleGeneration']>,
): Promise<void> {
  await tx.query(/* sql */ `insert into rule_generations (engine_id, generation, digest) values ($1, $2, $3)`, [
    id,
    generation,
    digest,
  ]);
  await tx.query(/* sql */ `update engines set rule_generation = $2, profiles = $3 where id = $1`, [
    id,
    generation,
    profiles,
  ]);
}

function auditDetail(claim: Claim, reason: Reason | undefined): JsonObject {
  return { attempt: claim.attempt, ...(reason === undefined ? {} : { reason: { ...reason } }) };
}
