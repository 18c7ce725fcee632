/**
 * Every refusal has a stable code. This table decides, for each, the HTTP status, what the CLI exits with, and a title;
 * a new code does not compile until all three are decided (DESIGN §9).
 */

/** 0 done, 1 failed, 2 usage, 3 refused or conflict, 4 blocked, 5 cannot reach, 6 timed out waiting. */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6;

interface ProblemKind {
  readonly status: number;
  readonly exit: ExitCode;
  readonly title: string;
}

export const PROBLEMS = {
  invalid_request: { status: 400, exit: 2, title: 'The request is not valid' },
  invalid_json: { status: 400, exit: 2, title: 'The body is not valid JSON' },
  not_supported: { status: 400, exit: 2, title: 'Not supported by this version' },
  unauthenticated: { status: 401, exit: 3, title: 'A valid API key is needed' },
  forbidden: { status: 403, exit: 3, title: 'The key has no right to do this' },
  not_found: { status: 404, exit: 3, title: 'There is no such thing' },
  method_not_allowed: { status: 405, exit: 2, title: 'The method is not allowed here' },
  project_exists: { status: 409, exit: 3, title: 'The project name is taken' },
  environment_exists: { status: 409, exit: 3, title: 'The environment name is taken' },
  environment_busy: { status: 409, exit: 3, title: 'Another operation of this environment has not ended' },
  environment_not_ready: { status: 409, exit: 3, title: 'The environment cannot do this in its present state' },
  environment_deleted: { status: 409, exit: 3, title: 'The environment is deleted' },
  idempotency_mismatch: { status: 409, exit: 3, title: 'The idempotency key was used for another request' },
  insufficient_capacity: { status: 409, exit: 3, title: 'The host has no room for more services' },
  ports_unavailable: { status: 409, exit: 3, title: 'The host publishes no ports of services' },
  services_unavailable: { status: 409, exit: 3, title: 'The engine cannot be reached by services' },
  no_engine: { status: 409, exit: 3, title: 'No engine can take the environment' },
  operation_finished: { status: 409, exit: 3, title: 'The operation has ended' },
  operation_blocked: { status: 409, exit: 4, title: 'The operation waits for a decision on its case' },
  precondition_failed: { status: 412, exit: 3, title: 'The object has changed' },
  body_too_large: { status: 413, exit: 2, title: 'The body is too large' },
  unsupported_media_type: { status: 415, exit: 2, title: 'The body must be JSON' },
  rate_limited: { status: 429, exit: 3, title: 'Too many requests' },
  internal: { status: 500, exit: 1, title: 'The server failed' },
  catalog_unavailable: { status: 503, exit: 5, title: 'The catalog cannot be reached' },
  host_unavailable: { status: 503, exit: 5, title: 'The host does not answer' },
  daemon_unreachable: { status: 503, exit: 5, title: 'The Docker daemon of the host cannot be reached' },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEMS;

/** One faulty field. `field` is a path into the body such as `services[0].name`. */
export interface FieldFault {
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

/** A refusal that a caller is told about. `detail` says what is allowed and what to do next, and holds no secret. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly errors: readonly FieldFault[];
  /** Further members of the problem document, such as `operationId` or `environmentId`. */
  readonly members: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { errors?: readonly FieldFault[]; members?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(detail, 'cause' in more ? { cause: more.cause } : {});
    this.name = 'Problem';
    this.code = code;
    this.detail = detail;
    this.errors = more.errors ?? [];
    this.members = more.members ?? {};
  }
}
