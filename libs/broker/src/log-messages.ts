/**
 * Logs of services over the broker (DESIGN §10: the gateway never sees the Docker socket). A gateway sends a request to the
 * queue of the host, and reads answers from a queue of its own, named after the request. Requests hold a container's id;
 * only answers hold lines, and those pass through: neither side logs or stores them.
 */
import {
  isLogTime,
  isUuid,
  type JsonObject,
  LOG_ENDS,
  LOG_TAIL_MAX,
  type LogEnd,
  type LogLine,
  type LogQuery,
} from '#kernel';

export interface LogRequest extends LogQuery {
  readonly id: string;
  /** As Docker writes it, in full. */
  readonly containerId: string;
}

/** Why a request is not answered with lines; each is also a code of the API. */
export const LOG_REFUSALS = ['not_found', 'daemon_unreachable', 'rate_limited', 'host_unavailable'] as const;
export type LogRefusalCode = (typeof LOG_REFUSALS)[number];

/**
 * The first answer says that the log is read, or why not; lines follow, some at a time, or none as a sign of life; the last
 * one says why it ends.
 */
export type LogAnswer = {
  /** How many lines came in the answers before this one: what a full queue has dropped is missed here. */
  readonly seq: number;
} & (
  | { readonly lines: readonly LogLine[] }
  | { readonly end: LogEnd; /** Lines before those that were sent were left out. */ readonly truncated: boolean }
  | { readonly refusal: { readonly code: LogRefusalCode; readonly message: string } }
);

const VERSION = 1;
const REQUEST_MAX_BYTES = 1_024;
const CONTAINER_ID = /^[0-9a-f]{64}$/;

/** Whoever serves the host's requests owns it: there is one at a time, as there is one worker. */
export function logRequestQueue(hostId: string): string {
  return `surefoot.logs.${hostId}`;
}

/** Made from the request's id, not named by it: an answer can go nowhere else. */
export function logAnswerQueue(requestId: string): string {
  return `surefoot.log-answers.${requestId}`;
}

export function logMessage(message: LogRequest | LogAnswer): JsonObject {
  return { version: VERSION, ...message } as unknown as JsonObject;
}

/** @returns the reason, without content, when it is not exactly such a message */
export function parseLogRequest(content: Buffer): LogRequest | { readonly fault: string } {
  if (content.length > REQUEST_MAX_BYTES) return { fault: `${content.length} bytes are too many` };
  const parsed = parseObject(content);
  if (parsed === undefined) return { fault: 'not a JSON object in UTF-8' };
  const { version, id, containerId, tail, since, follow, ...more } = parsed;
  if (version !== VERSION) return { fault: 'another version' };
  if (typeof id !== 'string' || !isUuid(id)) return { fault: 'id is not a UUID' };
  if (typeof containerId !== 'string' || !CONTAINER_ID.test(containerId)) return { fault: 'containerId is not one' };
  if (typeof tail !== 'number' || !Number.isInteger(tail) || tail < 0 || tail > LOG_TAIL_MAX)
    return { fault: `tail is not a number from 0 to ${LOG_TAIL_MAX}` };
  if (typeof follow !== 'boolean') return { fault: 'follow is not a boolean' };
  if (Object.keys(more).length > 0) return { fault: 'members that do not belong there' };
  if (since === undefined) return { id, containerId, tail, follow };
  if (typeof since !== 'string' || !isLogTime(since)) return { fault: 'since is not a time' };
  return { id, containerId, tail, since, follow };
}

/** @returns undefined for what is none: a worker of another version sent it */
export function parseLogAnswer(content: Buffer): LogAnswer | undefined {
  const { version, seq, lines, end, truncated, refusal } = parseObject(content) ?? {};
  if (version !== VERSION || typeof seq !== 'number') return undefined;
  // The lines themselves are the worker's, who made them by the same types.
  if (Array.isArray(lines)) return { seq, lines: lines as readonly LogLine[] };
  if (typeof end === 'string' && Object.hasOwn(LOG_ENDS, end))
    return { seq, end: end as LogEnd, truncated: truncated === true };
  const { code, message } = (refusal ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const known = LOG_REFUSALS.find((one) => one === code);
  return known === undefined ? undefined : { seq, refusal: { code: known, message: String(message) } };
}

function parseObject(content: Buffer): Readonly<Record<string, unknown>> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    return undefined;
  }
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  return isObject ? (parsed as Readonly<Record<string, unknown>>) : undefined;
}
