/** Cancelling an operation (DESIGN §3): at once while nothing has been done for it, else by a flag that the worker reads. */
import { Problem } from '#kernel';
import type { Identities, OperationKind, OperationState, EnvironmentState } from '#protocol';
import { OPERATIONS } from '#protocol';
import type { Tx } from '../catalog.ts';
import { endQueued } from './accept.ts';
import { writeAudit } from './audit.ts';
import { endEngine, endEnvironment } from './endings.ts';
import { type Idempotency, idempotencyMismatch, rememberKey } from './idempotency.ts';
import { OPEN_CASE_ID } from './waiting.ts';

export interface Cancellation {
  readonly operationId: string;
  readonly requestedBy: { readonly name: string };
  readonly idempotency?: Idempotency;
}

interface ToCancel {
  readonly kind: OperationKind;
  readonly state: OperationState;
  readonly environment_id: string | null;
  readonly engine_id: string;
  readonly request: { readonly previousState?: EnvironmentState };
  readonly begun: boolean;
  readonly case_id: string | null;
}

const TO_CANCEL = /* sql */ `
  select o.kind, o.state, o.environment_id, o.engine_id, o.request,
         exists (select 1 from effects e where e.operation_id = o.id and e.outcome <> 'absent') as begun,
         ${OPEN_CASE_ID} as case_id
    from operations o where o.id = $1 for update of o`;

/** @throws Problem `not_found`, `operation_finished`, `operation_blocked`, `idempotency_mismatch` */
export async function cancelOperation(tx: Tx, cancellation: Cancellation): Promise<void> {
  const { operationId, requestedBy, idempotency } = cancellation;
  const remembered = await rememberKey(tx, idempotency, { operationId });
  if (remembered.answer === 'mismatch') throw idempotencyMismatch();
  if (remembered.answer === 'repeated') return;
  const [operation] = await tx.query<ToCancel>(TO_CANCEL, [operationId]);
  if (operation === undefined) throw new Problem('not_found', 'there is no such operation');
  switch (operation.state) {
    case 'succeeded':
    case 'failed':
    case 'cancelled':
      throw new Problem('operation_finished', `the operation is ${operation.state}`, { members: { operationId } });
    case 'blocked':
      throw new Problem('operation_blocked', `the operation waits for a decision${ofCase(operation.case_id)}`, {
        members: { operationId, ...(operation.case_id === null ? {} : { caseId: operation.case_id }) },
      });
    case 'queued':
      // What an earlier attempt has made is undone by the worker, as with a running operation.
      if (operation.begun) await requestCancel(tx, operationId);
      else await cancelQueued(tx, operationId, operation, requestedBy.name);
      break;
    case 'running':
      await requestCancel(tx, operationId);
      break;
  }
  await writeAudit(tx, `key ${requestedBy.name}`, 'operation.cancel', operationId, { state: operation.state });
}

function ofCase(caseId: string | null): string {
  return caseId === null ? '' : ` on case ${caseId}`;
}

async function requestCancel(tx: Tx, operationId: string): Promise<void> {
  await tx.query(/* sql */ `update operations set cancel_requested = true where id = $1`, [operationId]);
}

async function cancelQueued(tx: Tx, operationId: string, operation: ToCancel, by: string): Promise<void> {
  await endQueued(tx, operationId, 'cancel', { code: 'cancelled', message: `cancelled by key ${by}` });
  const kind = OPERATIONS[operation.kind];
  if (kind.subject === 'engine') return endEngine(tx, operation.engine_id, kind.engine.cancelled);
  const environmentId = operation.environment_id ?? '';
  if (operation.kind !== 'environment.delete')
    return endEnvironment(tx, environmentId, kind.environment.cancelled, false);
  const state = await withoutDelete(tx, environmentId, operation.request.previousState);
  if (state !== undefined) await endEnvironment(tx, environmentId, state, false);
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
