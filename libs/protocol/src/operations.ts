/**
 * Operation kinds: one row each. A new kind is one entry here (and its effects in libs/effects).
 */
import type { EngineState, EnvironmentState } from './states.ts';
import type { EngineSubject, EnvironmentSubject, Situation, Step } from './plans.ts';
import {
  planEngineCreate,
  planEngineRules,
  planEngineStart,
  planEnvironmentCreate,
  planEnvironmentDelete,
  planEnvironmentStart,
} from './plans.ts';

export const ROLES = ['viewer', 'developer', 'operator', 'admin'] as const;
/** What an API key may do; each includes the ones before it. */
export type Role = (typeof ROLES)[number];

export function roleIncludes(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}

/** How an operation is asked for. `internal`: only by the system itself. */
export type Door = 'rest' | 'setup' | 'internal';

interface EnvironmentOperation {
  readonly subject: 'environment';
  readonly role: Role;
  readonly doors: readonly Door[];
  readonly plan: (situation: Situation<EnvironmentSubject>) => Step;
  /** The environment's state while the operation is open, and after each end. */
  readonly environment: Readonly<Record<'open' | 'succeeded' | 'failed' | 'cancelled', EnvironmentState>>;
  /** What happens when recovery has used up the bound of interruptions after settled effects. */
  readonly onInterrupted: 'undo' | 'block';
}

interface EngineOperation {
  readonly subject: 'engine';
  readonly role: Role;
  readonly doors: readonly Door[];
  readonly plan: (situation: Situation<EngineSubject>) => Step;
  readonly engine: Readonly<Record<'open' | 'succeeded' | 'failed' | 'cancelled', EngineState>>;
  readonly onInterrupted: 'undo' | 'block';
}

export const OPERATIONS = {
  'environment.create': {
    subject: 'environment',
    role: 'developer',
    doors: ['rest'],
    plan: planEnvironmentCreate,
    environment: { open: 'provisioning', succeeded: 'ready', failed: 'failed', cancelled: 'deleted' },
    onInterrupted: 'undo',
  },
  'environment.delete': {
    subject: 'environment',
    role: 'developer',
    doors: ['rest'],
    plan: planEnvironmentDelete,
    environment: { open: 'deleting', succeeded: 'deleted', failed: 'degraded', cancelled: 'degraded' },
    onInterrupted: 'block',
  },
  'environment.start': {
    subject: 'environment',
    role: 'developer',
    doors: ['internal'],
    plan: planEnvironmentStart,
    environment: { open: 'updating', succeeded: 'ready', failed: 'degraded', cancelled: 'degraded' },
    onInterrupted: 'undo',
  },
  'engine.create': {
    subject: 'engine',
    role: 'admin',
    doors: ['setup'],
    plan: planEngineCreate,
    engine: { open: 'creating', succeeded: 'ready', failed: 'failed', cancelled: 'failed' },
    onInterrupted: 'undo',
  },
  'engine.rules': {
    subject: 'engine',
    role: 'admin',
    doors: ['setup'],
    plan: planEngineRules,
    engine: { open: 'ready', succeeded: 'ready', failed: 'ready', cancelled: 'ready' },
    onInterrupted: 'block',
  },
  'engine.start': {
    subject: 'engine',
    role: 'admin',
    doors: ['internal'],
    plan: planEngineStart,
    engine: { open: 'ready', succeeded: 'ready', failed: 'ready', cancelled: 'ready' },
    onInterrupted: 'block',
  },
} as const satisfies Record<string, EnvironmentOperation | EngineOperation>;

export type OperationKind = keyof typeof OPERATIONS;

export function isOperationKind(text: string): text is OperationKind {
  return Object.hasOwn(OPERATIONS, text);
}

export function opensTo(kind: OperationKind, door: Door): boolean {
  const doors: readonly Door[] = OPERATIONS[kind].doors;
  return doors.includes(door);
}

/** The one place where a kind meets its plan. */
export function nextStep(kind: OperationKind, situation: Situation): Step {
  const operation: EnvironmentOperation | EngineOperation = OPERATIONS[kind];
  const { subject } = situation;
  if (operation.subject === 'environment' && subject.type === 'environment')
    return operation.plan({ ...situation, subject });
  if (operation.subject === 'engine' && subject.type === 'engine') return operation.plan({ ...situation, subject });
  throw new TypeError(`${kind} is about an ${operation.subject}, not an ${subject.type}`);
}
