import { First1764000000001 } from './0001-first.ts';
import { Services1764400000002 } from './0002-services.ts';

/** In order; a released migration is never changed, only followed by another. */
export const MIGRATIONS = [First1764000000001, Services1764400000002] as const;
