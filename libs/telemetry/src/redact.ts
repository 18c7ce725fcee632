/**
 * The second line of defence: no secret is passed to the logger (invariant 9), and one that is passed all the same is
 * taken out here. Works on a copy, never on what it was given.
 */

const NAMES = /pass(word|wd|phrase)|secret|verifier|authorization|cookie|api_?key|private_?key|credential|sealed/i;

/** What secrets look like in the middle of a text. */
const TEXTS: readonly (readonly [RegExp, string])[] = [
  [/([a-z][a-z0-9+.-]*:\/\/[^\s:/?#@]*:)[^\s/?#@]+@/gi, '$1***@'],
  [/SCRAM-SHA-256\$\d+:[\w+/=]+\$[\w+/=]+:[\w+/=]+/g, 'SCRAM-SHA-256$***'],
  [/\bsfk_[\w-]+/g, 'sfk_***'],
  [/\b(password)(\s*[:=]?\s*)(E?'(?:[^'\\]|''|\\.)*'|"[^"]*")/gi, '$1$2***'],
  [/\b(bearer|basic)\s+[\w+/=.~-]{8,}/gi, '$1 ***'],
];

/** Deep enough for our fields; a client's error object may lead through its sockets and back. */
const DEPTH_MAX = 6;
const CAUSES_MAX = 8;

function redactText(text: string): string {
  return TEXTS.reduce((redacted, [pattern, replacement]) => redacted.replace(pattern, replacement), text);
}

export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return describeError(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (depth >= DEPTH_MAX) return '…';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, NAMES.test(name) ? '***' : redact(item, depth + 1)]),
  );
}

interface ErrorFields {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/**
 * Only these fields: an error of pg also carries `detail`, `where` and `internalQuery`, which quote values of the row or
 * of the statement.
 */
function describeError(error: Error, causes = 0): ErrorFields {
  const { name, message, stack } = error;
  const code = (error as { code?: unknown }).code;
  const deeper = (inner: unknown): unknown =>
    inner instanceof Error ? (causes < CAUSES_MAX ? describeError(inner, causes + 1) : '…') : redact(inner);
  return {
    name,
    message: redactText(message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(stack === undefined ? {} : { stack: redactText(stack) }),
    ...(error.cause === undefined ? {} : { cause: deeper(error.cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.map(deeper) } : {}),
  };
}
