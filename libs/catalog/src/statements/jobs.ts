/** What a worker asks the catalog about the jobs of its host. */
import { randomUUID } from 'node:crypto';
import type { EngineState, OperationKind } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { ENQUEUE } from './claims.ts';

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

/** One of them by its id; undefined when it has ended, is held, or was never there. */
export async function openJob(tx: Tx, hostId: string, jobId: string): Promise<OpenJob | undefined> {
  const [job] = await tx.query<OpenJob>(`${OPEN} and j.id = $2`, [hostId, jobId]);
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

/**
 * Asks for an engine's container to be started again, unless that is asked for already. Asked by the worker that found it
 * stopped; carried out like any other operation.
 */
export async function requestEngineStart(tx: Tx, hostId: string, engineId: string): Promise<boolean> {
  const operationId = randomUUID();
  const jobId = randomUUID();
  const made = await tx.query(
    /* sql */ `insert into operations (id, kind, host_id, engine_id, state)
               select $1, 'engine.start', $2, e.id, 'queued' from engines e
                where e.id = $3 and not exists (
                  select 1 from operations o where o.engine_id = e.id and o.kind = 'engine.start' and o.state in ('queued', 'running', 'blocked'))
               returning id`,
    [operationId, hostId, engineId],
  );
  if (made.length === 0) return false;
  await tx.query(/* sql */ `insert into jobs (id, operation_id, host_id, schema_version) values ($1, $2, $3, 1)`, [
    jobId,
    operationId,
    hostId,
  ]);
  await tx.query(ENQUEUE, [jobId]);
  await writeAudit(tx, `host ${hostId}`, 'engine.start', engineId, { operationId });
  return true;
}
