import { First1764000000001 } from './0001-first.ts';

/** In order; a released migration is never changed, only followed by another. */
export const MIGRATIONS = [First1764000000001] as const;
