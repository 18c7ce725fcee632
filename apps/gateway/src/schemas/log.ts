import { z } from 'zod';
import { isLogTime, LOG_LINE_MAX_BYTES, LOG_TAIL_DEFAULT, LOG_TAIL_MAX } from '#kernel';
import { onlyFields } from './fields.ts';
import { Timestamp } from './text.ts';

export const LogQuerySchema = onlyFields({
  tail: z.coerce
    .number(`a number from 0 to ${LOG_TAIL_MAX}`)
    .int()
    .min(0)
    .max(LOG_TAIL_MAX)
    .optional()
    .meta({ description: `At most so many of the last lines; ${LOG_TAIL_DEFAULT} if left out` }),
  since: z
    .string()
    .refine(isLogTime, 'a time as in 2026-01-31T12:00:00.123456789Z')
    .optional()
    .meta({ description: 'Only lines from then on', format: 'date-time' }),
  follow: z
    .enum(['true', 'false'])
    .optional()
    .meta({ description: 'Go on with what is written from now on; if left out, when an event stream is asked for' }),
});
export type LogQuery = z.infer<typeof LogQuerySchema>;

const LogLineSchema = z
  .object({
    at: Timestamp.meta({ description: 'With nanoseconds' }),
    stream: z.enum(['stdout', 'stderr']),
    text: z.string().meta({ description: 'Control characters are in it as they were written' }),
    cut: z
      .literal(true)
      .optional()
      .meta({ description: `The line went on: at most ${LOG_LINE_MAX_BYTES} bytes of it are shown` }),
  })
  .meta({ id: 'LogLine' });

export const LogSchema = z
  .object({
    items: z.array(LogLineSchema).meta({ description: 'Oldest first' }),
    truncated: z.boolean().meta({ description: 'Older lines were left out: an answer holds at most 1 MiB of them' }),
  })
  .meta({ id: 'Log' });
export type LogView = z.infer<typeof LogSchema>;
