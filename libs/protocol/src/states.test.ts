import { describe, expect, test } from '@jest/globals';
import type { OperationEvent, OperationState } from './states.ts';
import { IllegalTransition, isOpen, nextOperationState, OPERATION_EVENTS, OPERATION_STATES } from './states.ts';

/** Written out here once more, so that a change of the table is a decision and not a slip. */
const LEGAL: readonly (readonly [OperationState, OperationEvent, OperationState])[] = [
  ['queued', 'claim', 'running'],
  ['queued', 'cancel', 'cancelled'],
  ['queued', 'fail', 'failed'],
  ['running', 'succeed', 'succeeded'],
  ['running', 'fail', 'failed'],
  ['running', 'cancel', 'cancelled'],
  ['running', 'requeue', 'queued'],
  ['running', 'block', 'blocked'],
  ['blocked', 'decide', 'queued'],
];

const PAIRS = OPERATION_STATES.flatMap((state) => OPERATION_EVENTS.map((event) => [state, event] as const));
const legal = (state: OperationState, event: OperationEvent): OperationState | undefined =>
  LEGAL.find(([from, by]) => from === state && by === event)?.[2];

describe('operations, every state with every event', () => {
  test.each(LEGAL)('an operation that is %s and meets %s becomes %s', (state, event, next) => {
    expect(nextOperationState(state, event)).toBe(next);
  });

  test.each(PAIRS.filter(([state, event]) => legal(state, event) === undefined))(
    'an operation that is %s cannot %s',
    (state, event) => {
      expect(() => nextOperationState(state, event)).toThrow(IllegalTransition);
    },
  );

  test('an operation reaches one end and stays there: what has ended is not open, everything else is (invariant 12)', () => {
    for (const state of OPERATION_STATES)
      expect([state, isOpen(state)]).toEqual([state, LEGAL.some(([from]) => from === state)]);
    expect(OPERATION_STATES.filter((state) => !isOpen(state))).toEqual(['succeeded', 'failed', 'cancelled']);
  });

  test('every open state leads to an end', () => {
    for (const start of OPERATION_STATES) {
      const reached = new Set<OperationState>([start]);
      for (const state of reached) for (const [from, , to] of LEGAL) if (from === state) reached.add(to);
      expect([...reached].some((state) => !isOpen(state))).toBe(true);
    }
  });
});
