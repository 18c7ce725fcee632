/** The log of every process: one JSON line per transition, a fixed message, data in fields (STYLE, habit 9). */
import type { Logger, LogFields } from '#kernel';
import { destination, pino, stdTimeFunctions, type DestinationStream } from 'pino';
import { redact } from './redact.ts';

interface LoggerOptions {
  /** `gateway`, `worker`, `reconciler` … */
  readonly process: string;
  readonly hostId: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** Standard output speaks a protocol in some processes: those log to standard error. */
  readonly to?: 'stdout' | 'stderr';
}

/** @param stream for tests; else `to`, written before the call returns, so that a crash loses no line. */
export function createLogger(options: LoggerOptions, stream?: DestinationStream): Logger {
  const log = pino(
    {
      level: options.level,
      messageKey: 'message',
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        bindings: () => ({ process: options.process, pid: process.pid, host: options.hostId }),
      },
    },
    stream ?? destination({ dest: options.to === 'stderr' ? 2 : 1, sync: true }),
  );
  return {
    info: (message, fields) => log.info(clean(fields), message),
    warn: (message, fields) => log.warn(clean(fields), message),
    error: (message, fields) => log.error(clean(fields), message),
  };
}

function clean(fields: LogFields = {}): object {
  return redact(fields) as object;
}
