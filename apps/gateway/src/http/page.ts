/** Lists (DESIGN §9): `{items, nextCursor}`. A cursor is opaque to callers: the place after which the next page begins. */
import { z } from 'zod';
import { isUuid } from '#kernel';
import type { PageStart } from '#catalog';
import { fieldFault } from './field-faults.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

/** Fields of every list's query. */
export const PAGE_FIELDS = {
  limit: z.coerce
    .number(`a number from 1 to ${LIMIT_MAX}`)
    .int()
    .min(1)
    .max(LIMIT_MAX)
    .optional()
    .meta({ description: `Items per page; ${LIMIT_DEFAULT} if left out` }),
  cursor: z.string().max(400).optional().meta({ description: '`nextCursor` of the page before' }),
};

export function pageLimit(query: { readonly limit?: number | undefined }): number {
  return query.limit ?? LIMIT_DEFAULT;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** @param rows one more than `limit`, if there are more */
export function toPage<Row, T>(
  rows: readonly Row[],
  limit: number,
  show: (row: Row) => T,
  cursor: (row: Row) => string,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(show),
    nextCursor: rows.length > limit && last !== undefined ? cursor(last) : null,
  };
}

export function timeCursor(row: { readonly page_at: string; readonly id: string }): string {
  return encode([row.page_at, row.id]);
}

/** timestamptz as PostgreSQL writes it in ISO style. */
const TIME = /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}$/;

/** @throws Problem `invalid_request` for anything that `timeCursor` did not make */
export function fromTimeCursor(cursor: string | undefined): PageStart | undefined {
  if (cursor === undefined) return undefined;
  const [at, id] = decode(cursor);
  if (at === undefined || id === undefined || !TIME.test(at) || !isUuid(id)) throw badCursor();
  return { at, id };
}

export function nameCursor(row: { readonly name: string }): string {
  return encode([row.name]);
}

/** @throws Problem `invalid_request` */
export function fromNameCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const [name] = decode(cursor);
  if (name === undefined || name.includes('\0')) throw badCursor();
  return name;
}

function encode(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function decode(cursor: string): readonly (string | undefined)[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (Array.isArray(parts) && parts.every((part) => typeof part === 'string')) return parts;
  } catch {
    // Answered below, like anything else that is not a cursor of ours.
  }
  throw badCursor();
}

function badCursor(): Error {
  return fieldFault('cursor', 'cursor', 'not a cursor of this list: pass nextCursor as it was given');
}
