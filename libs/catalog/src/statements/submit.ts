/** The one way in for every operation, whichever door it comes through: operation, job and outbox row, or nothing. */
import type { JsonObject } from '#kernel';
import type { Door, OperationKind } from '#protocol';
import { opensTo } from '#protocol';
import type { Tx } from '../catalog.ts';

export interface OperationToSubmit {
  readonly operationId: string;
  readonly jobId: string;
  readonly kind: OperationKind;
  readonly hostId: string;
  readonly engineId: string;
  readonly projectId?: string;
  readonly environmentId?: string;
  /** API key; left out when the system itself asks. */
  readonly requestedBy?: string;
  readonly request: JsonObject;
  readonly waitingFor?: string | undefined;
}

const JOB_SCHEMA_VERSION = 1;

/** A job message carries an id and a schema version, nothing to act on. */
const MESSAGE = /* sql */ `'', 'surefoot.jobs.' || host_id, jsonb_build_object('version', schema_version, 'jobId', id)`;

const SUBMIT = /* sql */ `
  with operation as (
    insert into operations (id, kind, host_id, project_id, environment_id, engine_id, requested_by, request, state, waiting_for)
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9)
    on conflict do nothing returning id),
  job as (
    insert into jobs (id, operation_id, host_id, schema_version) select $10, id, $3, $11 from operation
    returning id, host_id, schema_version)
  insert into outbox (exchange, routing_key, message) select ${MESSAGE} from job returning id`;

/** @returns false when there is one of this id, or another open one that keeps it out */
export async function submitOperation(tx: Tx, door: Door, operation: OperationToSubmit): Promise<boolean> {
  if (!opensTo(operation.kind, door)) throw new TypeError(`${operation.kind} does not come through the door ${door}`);
  const made = await tx.query(SUBMIT, [
    operation.operationId,
    operation.kind,
    operation.hostId,
    operation.projectId ?? null,
    operation.environmentId ?? null,
    operation.engineId,
    operation.requestedBy ?? null,
    JSON.stringify(operation.request),
    operation.waitingFor ?? null,
    operation.jobId,
    JOB_SCHEMA_VERSION,
  ]);
  return made.length > 0;
}

/** A job that goes back to the queue gets a new message. */
export async function enqueueAgain(tx: Tx, jobId: string): Promise<void> {
  await tx.query(
    /* sql */ `insert into outbox (exchange, routing_key, message) select ${MESSAGE} from jobs where id = $1`,
    [jobId],
  );
}
