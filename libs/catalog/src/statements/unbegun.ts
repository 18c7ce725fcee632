/** The end of an operation for which nothing has been done: cancelled on request, or failed because it never may begin. */
import type { Reason } from '#kernel';
import type { EnvironmentState, OperationKind } from '#protocol';
import { nextOperationState, OPERATIONS } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { endEngine, endEnvironment, servicesNotStarted } from './endings.ts';
import { withoutDelete } from './without-delete.ts';

export interface Unbegun {
  readonly id: string;
  readonly kind: OperationKind;
  readonly environment_id: string | null;
  readonly engine_id: string;
  readonly request: { readonly previousState?: EnvironmentState };
}

/** An operation that was asked for and can never be claimed. Nothing happens when it is no longer queued. */
export async function failQueued(tx: Tx, operationId: string, reason: Reason): Promise<void> {
  const [operation] = await tx.query<Unbegun>(
    /* sql */ `select id, kind, environment_id, engine_id, request from operations where id = $1 and state = 'queued' for update`,
    [operationId],
  );
  if (operation === undefined) return;
  await endUnbegun(tx, operation, 'fail', reason);
  await writeAudit(tx, 'catalog', 'operation.failed', operationId, { reason: { ...reason } });
}

/** Operation and what it is about. A delete that never began leaves the environment as it was. */
export async function endUnbegun(tx: Tx, operation: Unbegun, event: 'cancel' | 'fail', reason: Reason): Promise<void> {
  if (!(await endQueued(tx, operation.id, event, reason))) return;
  const kind = OPERATIONS[operation.kind];
  const ending = event === 'cancel' ? 'cancelled' : 'failed';
  if (kind.subject === 'engine') return endEngine(tx, operation.engine_id, kind.engine[ending]);
  const environmentId = operation.environment_id ?? '';
  if (operation.kind === 'environment.start')
    return endEnvironment(tx, environmentId, kind.environment[ending], false, servicesNotStarted(reason));
  if (operation.kind !== 'environment.delete')
    return endEnvironment(tx, environmentId, kind.environment[ending], false);
  const state = await withoutDelete(tx, environmentId, operation.request.previousState);
  if (state !== undefined) await endEnvironment(tx, environmentId, state, false);
}

/** @returns whether it was still queued */
export async function endQueued(
  tx: Tx,
  operationId: string,
  event: 'cancel' | 'fail',
  reason: Reason,
): Promise<boolean> {
  const ended = await tx.query(
    /* sql */ `update operations set state = $2, stage = $2, reason = $3, waiting_for = null, finished_at = now()
                where id = $1 and state = 'queued' returning 1`,
    [operationId, nextOperationState('queued', event), JSON.stringify(reason)],
  );
  return ended.length > 0;
}
