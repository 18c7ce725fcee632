/** Cancelling an operation (DESIGN §3): at once while nothing has been done for it, else by a flag that the worker reads. */
import { Problem } from '#kernel';
import type { OperationState } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { type Idempotency, idempotencyMismatch, rememberKey } from './idempotency.ts';
import { endUnbegun, type Unbegun } from './unbegun.ts';
import { OPEN_CASE_ID } from './waiting.ts';

export interface Cancellation {
  readonly operationId: string;
  readonly requestedBy: { readonly name: string };
  /** Always: a cancel that is repeated finds what it has done itself, and must know it from another's. */
  readonly idempotency: Idempotency;
}

interface ToCancel extends Unbegun {
  readonly state: OperationState;
  readonly begun: boolean;
  readonly case_id: string | null;
}

const TO_CANCEL = /* sql */ `
  select o.id, o.kind, o.state, o.environment_id, o.engine_id, o.request,
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
      else
        await endUnbegun(tx, operation, 'cancel', {
          code: 'cancelled',
          message: `cancelled by key ${requestedBy.name}`,
        });
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

/** Whether a cancel, or a delete that takes its place, waits for this operation's next boundary. */
export async function isCancelled(tx: Tx, operationId: string): Promise<boolean> {
  const [row] = await tx.query<{ cancel_requested: boolean }>(
    /* sql */ `select cancel_requested from operations where id = $1`,
    [operationId],
  );
  return row?.cancel_requested === true;
}
