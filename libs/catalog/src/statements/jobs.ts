/** What a worker asks the catalog about the jobs of its host. */
import { randomUUID } from 'node:crypto';
import type { EngineState, OperationKind } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import type { EngineRow } from '../rows.ts';
import { ENGINE } from './situation.ts';
import { submitOperation } from './submit.ts';

export interface OpenJob {
  readonly jobId: string;
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly engineId: string;
  readonly engineName: string;
  readonly engineState: EngineState;
}

const OPEN = /* sql */ `
  select j.id as "jobId", o.id as "operationId", o.kind, e.id as "engineId", e.name as "engineName", e.state as "engineState"
    from operations o
    join jobs j on j.operation_id = o.id
    join engines e on e.id = o.engine_id
   where o.host_id = $1 and o.state = 'queued'`;

/** Jobs of a host that have not ended and are not held, oldest first. */
export async function openJobs(tx: Tx, hostId: string, limit: number): Promise<readonly OpenJob[]> {
  return tx.query<OpenJob>(`${OPEN} order by o.created_at, o.id limit $2`, [hostId, limit]);
}

const ONE = /* sql */ `
  select o.*, (select row_to_json(g) from (${ENGINE} where e.id = o."engineId") g) as engine
    from (${OPEN} and j.id = $2) o`;

/** One of them by its id, with its engine; undefined when it has ended, is held, or was never there. */
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

/**
 * Asks for an engine's container to be started again, unless that is asked for already. Asked by the worker that found it
 * stopped; carried out like any other operation.
 */
export async function requestEngineStart(tx: Tx, hostId: string, engineId: string): Promise<boolean> {
  const operationId = randomUUID();
  const jobId = randomUUID();
  const open = await tx.query(
    /* sql */ `select 1 from operations o
                where o.engine_id = $1 and o.kind = 'engine.start' and o.state in ('queued', 'running', 'blocked')`,
    [engineId],
  );
  // Only the host's one worker asks, so nobody comes in between.
  if (open.length > 0) return false;
  await submitOperation(tx, 'internal', { operationId, jobId, kind: 'engine.start', hostId, engineId, request: {} });
  await writeAudit(tx, `host ${hostId}`, 'engine.start', engineId, { operationId });
  return true;
}
