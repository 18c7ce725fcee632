/**
 * The state tables, as data. `next` is the only reader; a pair that is not in the table is a mistake of ours, not a state.
 */

export const OPERATION_STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'blocked'] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

export const OPERATION_EVENTS = ['claim', 'succeed', 'fail', 'cancel', 'requeue', 'block', 'decide'] as const;
/** `requeue`: after a proven interruption. `decide`: an operator settled the case of a blocked operation. */
export type OperationEvent = (typeof OPERATION_EVENTS)[number];

const OPERATION_TABLE = {
  queued: { claim: 'running', cancel: 'cancelled', fail: 'failed' },
  running: { succeed: 'succeeded', fail: 'failed', cancel: 'cancelled', requeue: 'queued', block: 'blocked' },
  blocked: { decide: 'queued' },
  succeeded: {},
  failed: {},
  cancelled: {},
} as const satisfies Record<OperationState, Partial<Record<OperationEvent, OperationState>>>;

export const ENVIRONMENT_STATES = [
  'provisioning',
  'ready',
  'degraded',
  'updating',
  'suspended',
  'deleting',
  'deleted',
  'failed',
  'blocked',
] as const;
export type EnvironmentState = (typeof ENVIRONMENT_STATES)[number];

export const ENGINE_STATES = ['creating', 'ready', 'failed', 'blocked'] as const;
export type EngineState = (typeof ENGINE_STATES)[number];

/** A (state, event) pair that no table holds. */
export class IllegalTransition extends Error {
  constructor(state: OperationState, event: OperationEvent) {
    super(`an operation that is ${state} cannot ${event}`);
    this.name = 'IllegalTransition';
  }
}

export function nextOperationState(state: OperationState, event: OperationEvent): OperationState {
  const row: Partial<Record<OperationEvent, OperationState>> = OPERATION_TABLE[state];
  const next = row[event];
  if (next === undefined) throw new IllegalTransition(state, event);
  return next;
}

/** An operation that has not ended: it still owns its environment. */
export function isOpen(state: OperationState): boolean {
  return Object.keys(OPERATION_TABLE[state]).length > 0;
}
