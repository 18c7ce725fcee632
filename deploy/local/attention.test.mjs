import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attention, few } from './attention.mjs';

const engine = { id: 'e1', name: 'main', state: 'ready' };
const refusal = {
  reason: { message: 'engine main is not the one that was pinned' },
  engineId: 'e1',
  operationId: null,
};

test('where all is well, nothing is said', () => {
  assert.deepEqual(attention({ cases: [], engines: [engine], blocked: [] }), { places: [], operations: [] });
});

test('a refused place and a blocked operation are each told once', () => {
  const reason = { message: 'who knows' };
  const found = attention({
    cases: [refusal, { reason, engineId: null, operationId: 'o1' }],
    engines: [{ ...engine, waitingFor: 'engine main is not the one that was pinned' }],
    blocked: [{ id: 'o1', kind: 'environment.create', reason, caseId: 'c1' }],
  });
  assert.deepEqual(found, {
    places: ['engine main is not the one that was pinned'],
    operations: ['operation o1 is blocked: who knows'],
  });
});

test('what no case tells is told by the engine and by the operation', () => {
  const found = attention({
    cases: [],
    engines: [
      { ...engine, waitingFor: 'engine main cannot be reached: it is stopped' },
      { ...engine, id: 'e2', state: 'blocked' },
      { ...engine, id: 'e3', state: 'creating', waitingFor: 'its server' },
    ],
    blocked: [{ id: 'o1', kind: 'engine.create', reason: null }],
  });
  assert.deepEqual(found, {
    places: ['engine main cannot be reached: it is stopped', 'engine main is blocked'],
    operations: ['operation o1 (engine.create) is blocked'],
  });
});

test('a long list ends in a number', () => {
  assert.deepEqual(few(['1', '2', '3', '4', '5']), ['1', '2', '3', '4', '5']);
  assert.deepEqual(few(['1', '2', '3', '4', '5', '6', '7']), ['1', '2', '3', '4', '5', '… and 2 more']);
});
