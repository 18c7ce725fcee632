/**
 * What an error from an engine means (STYLE, habit 5). Codes: PostgreSQL manual, appendix A.
 *
 * `answered`: the server refused the statement, so a transaction with it has no effect. `lost`: nothing is known about the
 * statement in flight. `unreachable`: the connection never came about, so nothing was sent.
 */
export type EngineError = 'answered' | 'lost' | 'unreachable';

/** The server ends the session itself with these; a COMMIT in flight may or may not have been done. */
const SESSION_ENDS = new Set(['57P01', '57P02', '57P03', '57P05', '25P03']);

/** No class begins with an E; `EPIPE` and its like have five letters too. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

export function classifyEngineError(error: unknown): EngineError {
  const code = errorCode(error);
  if (code === undefined) return 'lost';
  if (NEVER_SENT.has(code)) return 'unreachable';
  if (!SQLSTATE.test(code) || code.startsWith('08') || SESSION_ENDS.has(code)) return 'lost';
  return 'answered';
}

/** The server is not there now and may be soon: a connection attempt is worth repeating. */
export function isNotReadyYet(error: unknown): boolean {
  const code = errorCode(error);
  // 57P03: starting up or shutting down; 53300: no free connection.
  return (
    code === undefined ||
    NEVER_SENT.has(code) ||
    code === 'ECONNRESET' ||
    code === 'EPIPE' ||
    ['57P03', '57P01', '53300'].includes(code)
  );
}

/** SQLSTATE or errno. */
export function errorCode(error: unknown): string | undefined {
  if (error instanceof AggregateError) return errorCode(error.errors[0]);
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** The server's sentence without its `detail`, `where` or `query`, which can hold values. */
export function errorSentence(error: unknown): string {
  const code = errorCode(error);
  const message = error instanceof Error ? error.message : String(error);
  return code === undefined ? message : `${message} (${code})`;
}
