/**
 * What a failure of the catalog means, decided once (STYLE, habit 5).
 */

/**
 * The catalog could not be reached, or went away. Nothing of the transaction in hand is in force: whoever throws this has
 * made sure, for a lost reply to COMMIT by asking for the transaction's status. So it may be repeated.
 */
export class CatalogUnavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CatalogUnavailable';
  }
}

/**
 * The reply to a COMMIT was lost and the catalog did not come back in time to be asked. The caller knows neither way: it
 * may only repeat the same transaction with the same ids, or stop and leave the rest to recovery.
 */
export class CatalogFateUnknown extends Error {
  constructor(xid: string, options?: { cause?: unknown }) {
    super(`the outcome of catalog transaction ${xid} could not be asked for`, options);
    this.name = 'CatalogFateUnknown';
  }
}

/**
 * SQLSTATE classes in which the server itself says that it is not there for us now; class 53 is want of disk, memory or
 * connections, 58 a failing disk; 57014 and 55P03 are a statement or a lock that did not come in time.
 */
const UNAVAILABLE_STATES = /^(08|53|58|57P0[1-5]|57014|55P03|25006|40001|40P01)/;
/** errno and pg's own texts for a connection that never came, or is gone. */
const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);
const UNAVAILABLE_TEXTS = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error',
  'Client was closed',
];

/** Whether the server did not answer, or answered that it cannot serve now; a statement's own error is not that. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof CatalogUnavailable) return true;
  // Not `instanceof`: an error that Node makes in another realm than ours, as under Jest, is none of our Error.
  if (typeof error !== 'object' || error === null || !('message' in error)) return false;
  const { message, errors } = error as { message: unknown; errors?: unknown };
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(isUnavailable);
  const code = sqlState(error);
  if (code !== undefined) return UNAVAILABLE_STATES.test(code) || UNAVAILABLE_CODES.has(code);
  return UNAVAILABLE_TEXTS.some((text) => String(message).startsWith(text));
}

/** The server answered: the transaction's end is known from the answer itself. */
export function isServerAnswer(error: unknown): boolean {
  const code = sqlState(error);
  // EPIPE looks like a SQLSTATE. 57P01 to 57P03 also end the connection, so they do not tell what became of a COMMIT.
  return code !== undefined && !UNAVAILABLE_CODES.has(code) && /^(?!08|57P0)[0-9A-Z]{5}$/.test(code);
}

export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}
