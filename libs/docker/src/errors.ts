/**
 * What an error from the Docker daemon means, decided here once (STYLE, habit 5). The statuses are those of the Docker
 * Engine API reference; that a 500 can stand for a plain refusal (a port that is taken) is why `failed` is told apart from
 * `lost`: the daemon has answered, so the call is over and a look at the thing is final.
 */

export const DAEMON_ERRORS = {
  /** No connection came about: the request was never sent, and nothing was done. */
  unreachable: 'nothing done',
  /** 304: it is in that state already. */
  already: 'known',
  /** 404. */
  absent: 'known',
  /** 409: a name is taken, or the thing is in use. */
  conflict: 'known',
  /** Any other 4xx: refused as asked. */
  refused: 'known',
  /** 5xx: it was tried, and how far it came is for a look to tell. */
  failed: 'over',
  /** No answer, or half of one: the call may still be at work. */
  lost: 'unknown',
} as const satisfies Record<string, 'nothing done' | 'known' | 'over' | 'unknown'>;

export type DaemonErrorKind = keyof typeof DAEMON_ERRORS;

export class DaemonError extends Error {
  readonly kind: DaemonErrorKind;
  /** HTTP status, where there was an answer. */
  readonly status: number | undefined;
  /** The call asked for a change; of one that did not, nothing is left to find out. */
  readonly ofChange: boolean;

  constructor(
    kind: DaemonErrorKind,
    message: string,
    more: { status?: number; cause?: unknown; ofChange?: boolean } = {},
  ) {
    super(message, 'cause' in more ? { cause: more.cause } : {});
    this.name = 'DaemonError';
    this.kind = kind;
    this.status = more.status;
    this.ofChange = more.ofChange ?? false;
  }
}

/** Errors of connect(2) after which nothing can have been sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

export function classifyDaemonError(error: unknown): DaemonError {
  if (error instanceof DaemonError) return error;
  const { statusCode, code, syscall, json } = (error ?? {}) as {
    statusCode?: unknown;
    code?: unknown;
    syscall?: unknown;
    json?: { message?: unknown } | null;
  };
  const message = error instanceof Error ? error.message : String(error);
  if (typeof statusCode === 'number') {
    const said = typeof json?.message === 'string' ? json.message.trim() : message.trim();
    return new DaemonError(kindOfStatus(statusCode), said, { status: statusCode, cause: error });
  }
  const never =
    typeof code === 'string' && NEVER_SENT.has(code) && (syscall === 'connect' || syscall === 'getaddrinfo');
  return never
    ? new DaemonError('unreachable', `the Docker daemon cannot be reached: ${message}`, { cause: error })
    : new DaemonError('lost', `the connection to the Docker daemon was lost: ${message}`, { cause: error });
}

function kindOfStatus(status: number): DaemonErrorKind {
  if (status === 304) return 'already';
  if (status === 404) return 'absent';
  if (status === 409) return 'conflict';
  if (status >= 400 && status < 500) return 'refused';
  // Includes what no reference tells of: an answer, but none that says how it went.
  return 'failed';
}

export function isDaemonError(error: unknown, ...kinds: readonly DaemonErrorKind[]): error is DaemonError {
  return error instanceof DaemonError && (kinds.length === 0 || kinds.includes(error.kind));
}

/** The daemon has said no, so the call is over: a look at the thing tells for good what became of it. */
export function isAnswer(error: unknown): error is DaemonError {
  return isDaemonError(error, 'absent', 'conflict', 'refused', 'failed');
}
