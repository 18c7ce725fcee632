/** The end of an operation for which nothing has been done: cancelled on request, or failed because it never may begin. */
import type { Reason } from '#kernel';
import type { EnvironmentState, Identities, OperationKind, OperationState } from '#protocol';
import { nextOperationState, OPERATIONS } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { endEngine, endEnvironment } from './endings.ts';

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

const SETTLED_STATES: readonly (EnvironmentState | undefined)[] = ['ready', 'degraded', 'suspended', 'failed'];

const LAST_OTHER = /* sql */ `
  select o.kind, o.state, v.identities
    from environments v
    left join lateral (
      select kind, state from operations where environment_id = v.id and kind <> 'environment.delete'
       order by created_at desc, id desc limit 1) o on true
   where v.id = $1`;

/**
 * The state of an environment whose delete was cancelled before it did anything; undefined when what still runs decides.
 * A change that had been told to stop for the delete does still stop, but now clears up behind itself.
 */
async function withoutDelete(
  tx: Tx,
  environmentId: string,
  previous: EnvironmentState | undefined,
): Promise<EnvironmentState | undefined> {
  await tx.query(
    /* sql */ `update operations set superseded = false where environment_id = $1 and state in ('queued', 'running', 'blocked')`,
    [environmentId],
  );
  const [last] = await tx.query<{ kind: OperationKind | null; state: OperationState; identities: Identities }>(
    LAST_OTHER,
    [environmentId],
  );
  if (last === undefined || last.kind === null) return previous ?? 'degraded';
  switch (last.state) {
    case 'queued':
    case 'running':
    case 'blocked':
      return undefined;
    case 'succeeded':
      return SETTLED_STATES.includes(previous) ? previous : 'ready';
    case 'failed':
      return SETTLED_STATES.includes(previous) ? previous : 'failed';
    case 'cancelled':
      // It left to the delete what it had made; without anything made there is nothing left.
      return Object.keys(last.identities).length === 0 ? 'deleted' : 'degraded';
  }
}
