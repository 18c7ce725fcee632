/** What a worker asks the catalog about the jobs of its host. */
import { randomUUID } from 'node:crypto';
import type { Reason } from '#kernel';
import type { EngineState, OperationKind, OperationState } from '#protocol';
import { isOpen } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import type { EngineRow } from '../rows.ts';
import { ENGINE } from './situation.ts';
import { submitOperation } from './submit.ts';
import { IN_THE_WAY, OPEN_CASE_ID, type OtherOperation, waitingForOperation } from './waiting.ts';

export interface OpenJob {
  readonly jobId: string;
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly engineId: string;
  readonly engineName: string;
  readonly engineState: EngineState;
}

const OPEN = /* sql */ `
  select j.id as "jobId", m.id as "operationId", m.kind, e.id as "engineId", e.name as "engineName", e.state as "engineState"
    from operations m
    join jobs j on j.operation_id = m.id
    join engines e on e.id = m.engine_id
   where m.host_id = $1 and m.state = 'queued'`;

const RUNNABLE = /* sql */ `
  ${OPEN} and not exists (select 1 from operations o where ${IN_THE_WAY})
   order by m.created_at, m.id limit $2`;

/**
 * Jobs of a host that nobody has claimed, oldest first. Without those that wait for another operation: they may wait for
 * ever, and however many they are, they take no other job's place.
 */
export async function openJobs(tx: Tx, hostId: string, limit: number): Promise<readonly OpenJob[]> {
  return tx.query<OpenJob>(RUNNABLE, [hostId, limit]);
}

const HELD = /* sql */ `
  select j.id as "jobId", m.waiting_for as "waitingFor", x.*
    from operations m
    join jobs j on j.operation_id = m.id
    join lateral (
      select o.id, o.kind, o.state, ${OPEN_CASE_ID} as case_id from operations o where ${IN_THE_WAY} limit 1) x on true
   where m.host_id = $1 and m.state = 'queued'`;

/** Says of each job that waits for another operation what that one does now. */
export async function noteHeld(tx: Tx, hostId: string): Promise<void> {
  const held = await tx.query<OtherOperation & { readonly jobId: string; readonly waitingFor: string | null }>(HELD, [
    hostId,
  ]);
  for (const { jobId, waitingFor, ...other } of held)
    if (waitingFor !== waitingForOperation(other)) await noteWaiting(tx, [jobId], waitingForOperation(other));
}

const ONE = /* sql */ `
  select o.*, (select row_to_json(g) from (${ENGINE} where e.id = o."engineId") g) as engine
    from (${OPEN} and j.id = $2) o`;

/** One by its id, with its engine; undefined when it has ended, is claimed, or was never there. */
export async function openJob(
  tx: Tx,
  hostId: string,
  jobId: string,
): Promise<(OpenJob & { readonly engine: EngineRow }) | undefined> {
  const [job] = await tx.query<OpenJob & { engine: EngineRow }>(ONE, [hostId, jobId]);
  return job;
}

/** Shown as `waitingFor` in the operation; written only when it changes. */
export async function noteWaiting(tx: Tx, jobIds: readonly string[], waitingFor: string | null): Promise<void> {
  await tx.query(
    /* sql */ `update operations o set waiting_for = $2 from jobs j
                where j.id = any ($1::uuid[]) and o.id = j.operation_id and o.state = 'queued'
                  and o.waiting_for is distinct from $2`,
    [jobIds, waitingFor],
  );
}

/** Why an engine takes no work; null when it does. */
export async function noteEngineWaiting(tx: Tx, engineId: string, waitingFor: string | null): Promise<void> {
  await tx.query(/* sql */ `update engines set waiting_for = $2 where id = $1 and waiting_for is distinct from $2`, [
    engineId,
    waitingFor,
  ]);
}

/** `later`: it has failed, and is not asked for again before then. */
export type EngineStartAnswer =
  | { readonly answer: 'asked' | 'open' }
  | { readonly answer: 'later'; readonly failures: number; readonly reason: Reason | null; readonly at: Date };

interface PastStart {
  readonly state: OperationState;
  readonly reason: Reason | null;
  readonly finished_at: Date | null;
  readonly now: Date;
}

const START_PAUSE_MAX_MS = 300_000;
/** More failures in a row than the longest pause needs. */
const PAST_STARTS = 10;

const STARTS = /* sql */ `
  select o.state, o.reason, o.finished_at, now() as now
    from operations o
   where o.engine_id = $1 and o.kind = 'engine.start'
   order by o.created_at desc limit ${PAST_STARTS}`;

/**
 * Asks for an engine's container to be started again, unless that is asked for already. Asked by the worker that found it
 * stopped; carried out like any other operation. After each failure in a row it waits twice as long: an engine that cannot
 * start is found stopped at every look, for ever.
 */
export async function requestEngineStart(tx: Tx, hostId: string, engineId: string): Promise<EngineStartAnswer> {
  const operationId = randomUUID();
  const jobId = randomUUID();
  // Only the host's one worker asks, so nobody comes in between.
  const starts = await tx.query<PastStart>(STARTS, [engineId]);
  if (starts.some(({ state }) => isOpen(state))) return { answer: 'open' };
  const [last] = starts;
  const success = starts.findIndex(({ state }) => state === 'succeeded');
  const failures = success === -1 ? starts.length : success;
  if (last !== undefined && last.finished_at !== null && failures > 0) {
    const pauseMs = Math.min(1_000 * 2 ** failures, START_PAUSE_MAX_MS);
    const at = new Date(last.finished_at.getTime() + pauseMs);
    if (at > last.now) return { answer: 'later', failures, reason: last.reason, at };
  }
  await submitOperation(tx, 'internal', { operationId, jobId, kind: 'engine.start', hostId, engineId, request: {} });
  await writeAudit(tx, `host ${hostId}`, 'engine.start', engineId, { operationId });
  return { answer: 'asked' };
}
