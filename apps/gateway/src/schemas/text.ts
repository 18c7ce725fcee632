import { z } from 'zod';

/** What JSON can say and PostgreSQL cannot store: NUL, and half a surrogate pair. */
export function storable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** In answers: made by us, so described rather than checked. */
export const Timestamp = z.string().meta({ format: 'date-time' });
export const Id = z.string().meta({ format: 'uuid' });
