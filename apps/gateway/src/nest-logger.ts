import type { LoggerService } from '@nestjs/common';
import type { Logger } from '#kernel';

/** Nest's own lines, those that tell of trouble, in our log. */
export function nestLogger(logger: Logger): LoggerService {
  return {
    log: () => undefined,
    warn: (message: unknown, ...more: unknown[]) => logger.warn('nest', { detail: String(message), part: more.at(-1) }),
    error: (message: unknown, ...more: unknown[]) =>
      logger.error('nest', message instanceof Error ? { error: message } : { detail: String(message), more }),
  };
}
