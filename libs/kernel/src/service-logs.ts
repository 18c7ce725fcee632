/**
 * What services write, as it is passed on: shapes that the Docker side, the broker's messages and the API share, and the
 * bounds of all three. Lines are application data: they are shown, and neither logged nor stored by us.
 */

export interface LogLine {
  /** RFC 3339 with nanoseconds. */
  readonly at: string;
  readonly stream: 'stdout' | 'stderr';
  /** Without its line end. What was no UTF-8 is replaced; control characters are as they were written. */
  readonly text: string;
  /** The line went on, beyond LOG_LINE_MAX_BYTES. */
  readonly cut?: true;
}

/** Which lines of a service. */
export interface LogQuery {
  /** At most so many of the last lines. */
  readonly tail: number;
  /** RFC 3339: only lines from then on. */
  readonly since?: string;
  /** Go on with what is written from now on. */
  readonly follow: boolean;
}

export const LOG_TAIL_DEFAULT = 100;
export const LOG_TAIL_MAX = 10_000;
export const LOG_LINE_MAX_BYTES = 16 * 1024;
/** Of an answer that does not follow, as JSON. */
export const LOG_ANSWER_MAX_BYTES = 1024 * 1024;
export const LOG_FOLLOW_MAX_MS = 60 * 60_000;
/** Of one host, at a time. */
export const LOG_STREAMS_MAX = 32;
/** Of one API key, at a time: one that leaves its readers open does not take them all. */
export const LOG_STREAMS_PER_KEY_MAX = 16;

/** Why a stream of lines ended, and how that reads. */
export const LOG_ENDS = {
  complete: 'these are all lines that were asked for',
  stopped: 'the container has stopped',
  unreadable: 'the Docker daemon cannot read the log',
  time_limit: 'a log is followed for one hour at most',
  daemon_unreachable: 'the Docker daemon of the host went away',
  host_unavailable: 'the worker of the host stopped, or does not answer any more',
  broker_unavailable: 'the connection to the broker was lost',
  gateway_stopping: 'the gateway stops',
} as const satisfies Record<string, string>;

export type LogEnd = keyof typeof LOG_ENDS;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** RFC 3339, as far as a log knows times: to the nanosecond. */
export function isLogTime(text: string): boolean {
  return TIME.test(text) && !Number.isNaN(Date.parse(text));
}
