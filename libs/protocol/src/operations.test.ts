import { describe, expect, test } from '@jest/globals';
import { isOperationKind, nextStep, OPERATIONS, roleIncludes, ROLES } from './operations.ts';
import type { OperationKind } from './operations.ts';
import type { EngineSubject, EnvironmentSubject, Situation } from './plans.ts';
import { ENGINE_STATES, ENVIRONMENT_STATES } from './states.ts';

const KINDS = Object.keys(OPERATIONS) as OperationKind[];

const environment: EnvironmentSubject = {
  type: 'environment',
  id: '11111111-1111-4111-8111-111111111111',
  names: {
    database: 'a_11111111',
    door: 'a_11111111',
    owner: 'a_11111111_owner',
    logins: { migrate: 'a_11111111_migrate', app: 'a_11111111_app', readonly: 'a_11111111_readonly' },
  },
  extensions: [],
  connectionLimit: 20,
  profile: 'local',
  refusedDatabases: [],
  identities: {},
  services: [],
  place: { networkPool: '10.213.0.0/16', engineContainerId: 'c', published: undefined },
};
const engine: EngineSubject = {
  type: 'engine',
  id: '22222222-2222-4222-8222-222222222222',
  name: 'main',
  image: 'postgres:17',
  port: 5432,
  networkPool: '10.213.0.0/16',
  identities: { containerId: 'c1' },
};
const situation = (subject: EnvironmentSubject | EngineSubject): Situation => ({
  subject,
  effects: [],
  cancelRequested: false,
  superseded: false,
});

describe('operation kinds', () => {
  test('a kind is one of the table, and no name that every object has', () => {
    for (const kind of KINDS) expect(isOperationKind(kind)).toBe(true);
    for (const other of ['', 'toString', '__proto__', 'constructor', 'environment.Create', 'environment'])
      expect(isOperationKind(other)).toBe(false);
  });

  test.each(KINDS)('%s is planned for its own kind of subject and for no other', (kind) => {
    const [own, other] = OPERATIONS[kind].subject === 'environment' ? [environment, engine] : [engine, environment];
    expect(nextStep(kind, situation(own)).do).toMatch(/effect|finish/);
    expect(() => nextStep(kind, situation(other))).toThrow(TypeError);
  });

  test.each(KINDS)('%s names a state that its subject can be in for every way in which it ends', (kind) => {
    const operation = OPERATIONS[kind];
    const ends = Object.values(operation.subject === 'environment' ? operation.environment : operation.engine);
    expect(ends).toHaveLength(4);
    const states: readonly string[] = operation.subject === 'environment' ? ENVIRONMENT_STATES : ENGINE_STATES;
    for (const state of ends) expect(states).toContain(state);
  });

  test('a failed delete leaves an environment that can be deleted again, never one that counts as gone', () => {
    expect(['deleted', 'failed']).not.toContain(OPERATIONS['environment.delete'].environment.failed);
    expect(OPERATIONS['environment.delete'].onInterrupted).toBe('block');
  });
});

test.each(ROLES.flatMap((held, one) => ROLES.map((needed, other) => [held, needed, one >= other] as const)))(
  'the role %s has the rights of %s: %s',
  (held, needed, expected) => {
    expect(roleIncludes(held, needed)).toBe(expected);
  },
);
