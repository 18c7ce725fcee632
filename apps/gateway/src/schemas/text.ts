import { z } from 'zod';

/** What JSON can say and PostgreSQL cannot store: NUL, and half a surrogate pair. */
export function storable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

export const Timestamp = z.iso.datetime();
export const Id = z.uuid();
