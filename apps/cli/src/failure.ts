/** Why a command did not do what it was asked, and what it exits with (DESIGN §9). */
import { PROBLEMS, type ExitCode, type FieldFault, type ProblemCode } from '#kernel';
import type { Operation, ProblemDocument } from './api.ts';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  blocked: 4,
  unreachable: 5,
  timedOut: 6,
} as const satisfies Record<string, ExitCode>;

export interface FailureMore {
  /** What to do now. */
  readonly next?: string;
  readonly errors?: readonly FieldFault[];
  /** What people call a field, where its path says only the how-manieth it is. */
  readonly nameOf?: (field: string) => string;
  /** As the gateway showed it, for programs. */
  readonly operation?: Operation;
  readonly cause?: unknown;
}

export class CommandFailure extends Error {
  readonly exit: ExitCode;
  /** Stable, for programs. */
  readonly code: string;
  readonly next: string | undefined;
  readonly errors: readonly FieldFault[];
  readonly nameOf: (field: string) => string;
  readonly operation: Operation | undefined;

  constructor(exit: ExitCode, code: string, message: string, more: FailureMore = {}) {
    super(message, 'cause' in more ? { cause: more.cause } : {});
    this.name = 'CommandFailure';
    this.exit = exit;
    this.code = code;
    this.next = more.next;
    this.errors = more.errors ?? [];
    this.nameOf = more.nameOf ?? ((field) => field);
    this.operation = more.operation;
  }
}

/** A refusal of the gateway. */
export class Refusal extends CommandFailure {
  readonly problem: ProblemDocument;

  constructor(problem: ProblemDocument) {
    const next = nextStep(problem);
    super(exitOf(problem.code), problem.code, detailOf(problem), {
      errors: problem.errors ?? [],
      ...(next === undefined ? {} : { next }),
    });
    this.problem = problem;
  }
}

/** Faults are told one by one after it. */
function detailOf({ code, detail, errors = [] }: ProblemDocument): string {
  return code === 'invalid_request' && errors.length > 0 ? 'the request is not valid' : detail;
}

/** A code that is newer than this program is refused like any other. */
function exitOf(code: string): ExitCode {
  return Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code as ProblemCode].exit : EXIT.refused;
}

function nextStep({ code, operationId }: ProblemDocument): string | undefined {
  if (code === 'unauthenticated')
    return 'set SUREFOOT_API_KEY, or name the state folder that holds it in SUREFOOT_HOME';
  if (code === 'catalog_unavailable') return 'try again, or run: surefoot doctor';
  if (operationId !== undefined) return `see: surefoot op show ${operationId}`;
  return undefined;
}

/** An operation that ended as something else than `succeeded`. */
export function endedBadly(operation: Operation): CommandFailure {
  const { kind, id, state, reason } = operation;
  if (state === 'blocked')
    return new CommandFailure(EXIT.blocked, 'blocked', `${kind} is blocked${whyText(reason)}`, {
      operation,
      next: nextOfBlocked(operation),
    });
  // Its code is that of the failure, which is told with it.
  const why = reason === null ? '' : `: ${reason.message}`;
  const code = reason?.code ?? state;
  return new CommandFailure(EXIT.failed, code, `${kind} ${state}${why}`, {
    operation,
    next: `see: surefoot op show ${id}`,
  });
}

/** One that has not begun, and will not before somebody decides on another of its environment. */
export function behindBlock(waiting: Operation, blocked: Operation): CommandFailure {
  const behind = `${blocked.kind} is blocked${whyText(blocked.reason)}`;
  return new CommandFailure(EXIT.blocked, 'blocked', `${waiting.kind} is queued behind another operation: ${behind}`, {
    operation: waiting,
    next: `${nextOfBlocked(blocked)}; it runs after that by itself`,
  });
}

function whyText(reason: Operation['reason']): string {
  return reason === null ? '' : `: ${reason.message} (${reason.code})`;
}

function nextOfBlocked({ id, caseId }: Operation): string {
  return caseId === undefined
    ? `see: surefoot op show ${id}`
    : `it waits for a decision on its case: surefoot case show ${caseId}`;
}
