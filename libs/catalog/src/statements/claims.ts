/**
 * Claims: a worker's hold on a job (DESIGN §3, 2). Every write names the expected state and the claim, and a repetition
 * with the same claim id is answered `already`.
 */
import type { Reason } from '#kernel';
import type { Role } from '#protocol';
import { nextOperationState, OPERATIONS, roleIncludes } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { OperationRow } from '../rows.ts';
import { writeAudit } from './audit.ts';
import { enqueueAgain } from './submit.ts';
import { IN_THE_WAY, OPEN_CASE_ID, type OtherOperation, waitingForOperation } from './waiting.ts';

export interface Claim {
  readonly claimId: string;
  readonly jobId: string;
  readonly operationId: string;
  readonly hostId: string;
  readonly attempt: number;
  readonly claimNumber: number;
}

export type ClaimAnswer =
  | { readonly answer: 'claimed'; readonly claim: Claim }
  /** Cannot run now; the periodic look will ask again. */
  | { readonly answer: 'waiting'; readonly for: string }
  /** The requester no longer may do this. */
  | { readonly answer: 'revoked'; readonly operationId: string; readonly reason: Reason }
  /** Ended, blocked, held by another claim, or unknown: nothing to do for this message. */
  | { readonly answer: 'none' };

const JOB = /* sql */ `
  select o.id, o.kind, o.state, o.attempt, o.claim_id, o.environment_id, o.engine_id, o.host_id,
         o.project_id, k.id is not null as by_key, k.revoked_at is not null as revoked, k.role, k.project_ids
    from jobs j
    join operations o on o.id = j.operation_id
    left join api_keys k on k.id = o.requested_by
   where j.id = $1 and j.host_id = $2
     for update of o`;

const OTHER = /* sql */ `
  select o.id, o.kind, o.state,
         ${OPEN_CASE_ID} as case_id
    from jobs j
    join operations m on m.id = j.operation_id
    join operations o on ${IN_THE_WAY}
   where j.id = $1
   limit 1`;

const CLAIM = /* sql */ `
  with numbered as (update hosts set claim_number = claim_number + 1 where id = $4 returning claim_number),
  claimed as (
    insert into claims (id, job_id, operation_id, host_id, attempt, claim_number)
    select $1, $2, $3, $4, $5, claim_number from numbered)
  update operations
     set state = $6, attempt = $5, claim_id = $1, stage = 'claimed', waiting_for = null,
         started_at = coalesce(started_at, now())
    from numbered
   where id = $3 and state = 'queued'
  returning numbered.claim_number`;

/** @param claimId fresh for each claim, and the same when a claim whose reply was lost is repeated */
export async function claimJob(tx: Tx, jobId: string, hostId: string, claimId: string): Promise<ClaimAnswer> {
  const [[operation], [other]] = await Promise.all([
    tx.query<OperationRow & Requester>(JOB, [jobId, hostId]),
    tx.query<OtherOperation>(OTHER, [jobId]),
  ]);
  if (operation === undefined) return { answer: 'none' };
  if (operation.claim_id === claimId) return repeated(tx, claimId);
  if (operation.state !== 'queued') return { answer: 'none' };
  if (other !== undefined) return { answer: 'waiting', for: waitingForOperation(other) };
  const withdrawn = rightWithdrawn(operation);
  // Once begun, it is not left half-done: the plan undoes what a create has made, and a delete goes on to its end.
  if (withdrawn !== undefined && operation.attempt === 0)
    return { answer: 'revoked', operationId: operation.id, reason: withdrawn };
  if (withdrawn !== undefined)
    await tx.query(/* sql */ `update operations set abandon = coalesce(abandon, $2) where id = $1`, [
      operation.id,
      JSON.stringify(withdrawn),
    ]);
  const attempt = operation.attempt + 1;
  const state = nextOperationState('queued', 'claim');
  const [numbered] = await tx.query<{ claim_number: string }>(CLAIM, [
    claimId,
    jobId,
    operation.id,
    hostId,
    attempt,
    state,
  ]);
  if (numbered === undefined) throw new TypeError(`the catalog has no host ${hostId}`);
  const claimNumber = Number(numbered.claim_number);
  return { answer: 'claimed', claim: { claimId, jobId, operationId: operation.id, hostId, attempt, claimNumber } };
}

/** The key that asked, as it is now; all null when the system itself asked. */
interface Requester {
  readonly by_key: boolean;
  readonly revoked: boolean;
  readonly role: Role | null;
  readonly project_ids: readonly string[] | null;
}

/** The requester's rights are asked again at the claim: they may have been withdrawn since the request was accepted. */
function rightWithdrawn(operation: OperationRow & Requester): Reason | undefined {
  const { kind, by_key: byKey, revoked, role, project_ids: projects, project_id: project } = operation;
  if (!byKey) return undefined;
  if (revoked) return { code: 'requester_revoked', message: 'the key that asked for this has been revoked' };
  if (role === null || !roleIncludes(role, OPERATIONS[kind].role))
    return {
      code: 'requester_revoked',
      message: `the key that asked for this is no longer a ${OPERATIONS[kind].role}`,
    };
  if (projects !== null && project !== null && !projects.includes(project))
    return { code: 'requester_revoked', message: 'the key that asked for this no longer has the project' };
  return undefined;
}

async function repeated(tx: Tx, claimId: string): Promise<ClaimAnswer> {
  const [claim] = await tx.query<ClaimRow>(/* sql */ `select * from claims where id = $1 and ended_at is null`, [
    claimId,
  ]);
  return claim === undefined ? { answer: 'none' } : { answer: 'claimed', claim: toClaim(claim) };
}

interface ClaimRow {
  readonly id: string;
  readonly job_id: string;
  readonly operation_id: string;
  readonly host_id: string;
  readonly attempt: number;
  readonly claim_number: string;
}

function toClaim(row: ClaimRow): Claim {
  return {
    claimId: row.id,
    jobId: row.job_id,
    operationId: row.operation_id,
    hostId: row.host_id,
    attempt: row.attempt,
    claimNumber: Number(row.claim_number),
  };
}

/** The one live claim of a host, if there is one: what a worker that starts finds from the one before. */
export async function liveClaim(tx: Tx, hostId: string): Promise<Claim | undefined> {
  const [row] = await tx.query<ClaimRow>(/* sql */ `select * from claims where host_id = $1 and ended_at is null`, [
    hostId,
  ]);
  return row === undefined ? undefined : toClaim(row);
}

const END_CLAIM = /* sql */ `update claims set ended_at = now(), end_reason = $2 where id = $1 and ended_at is null`;

const REQUEUE = /* sql */ `
  update operations
     set state = $3, claim_id = null, stage = 'queued',
         preflight_interruptions = preflight_interruptions + case when $4 = 'preflight' then 1 else 0 end,
         stalled_resumes = case when $6::jsonb is not null then 0
                                when $4 <> 'resume' then stalled_resumes
                                when effects_at_resume < $5 then 0 else stalled_resumes + 1 end,
         effects_at_resume = case when $4 = 'resume' or $6::jsonb is not null then $5 else effects_at_resume end,
         abandon = coalesce($6::jsonb, abandon)
   where id = $1 and claim_id = $2 and state = 'running'
  returning id`;

/**
 * Back to the queue, with a new outbox row.
 * @param count which bound this interruption uses up; a clean stop uses none
 * @param settledEffects effects of the operation settled so far: the measure of progress
 */
export async function requeueOperation(
  tx: Tx,
  claim: Claim,
  count: 'preflight' | 'resume' | 'none',
  settledEffects: number,
  abandon?: Reason,
): Promise<void> {
  const requeued = await tx.query(REQUEUE, [
    claim.operationId,
    claim.claimId,
    nextOperationState('running', 'requeue'),
    count,
    settledEffects,
    abandon === undefined ? null : JSON.stringify(abandon),
  ]);
  await tx.query(END_CLAIM, [claim.claimId, count === 'none' ? 'stopped' : 'interrupted']);
  if (requeued.length === 0) return;
  await enqueueAgain(tx, claim.jobId);
  await writeAudit(tx, `host ${claim.hostId}`, 'operation.requeue', claim.operationId, {
    attempt: claim.attempt,
    count,
  });
}

export async function endClaim(tx: Tx, claimId: string, reason: string): Promise<void> {
  await tx.query(END_CLAIM, [claimId, reason]);
}
