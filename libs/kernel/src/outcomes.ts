/**
 * What an external change can come to. Three values, not two: a lost reply is not a failure (DESIGN §1, §3).
 */

/** The answer of an act. `refused` means: no effect now, nor from any earlier try under the same token. */
export type ActOutcome = 'applied' | 'refused' | 'unknown';

/** What the catalog can record for good about an effect. */
export type SettledOutcome = 'applied' | 'refused' | 'absent' | 'partial';

/** An effect's outcome as the API shows it. `unknown` is shown while a case is open, `undone` after its undo has settled. */
export const EFFECT_OUTCOMES = ['pending', 'applied', 'refused', 'absent', 'partial', 'unknown', 'undone'] as const;
export type EffectOutcome = (typeof EFFECT_OUTCOMES)[number];

/** Why something did not go as asked: a stable code for programs, a sentence for people; never a secret in either. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

/** The answer of a conditional write: it changed the row, it had changed it before, or somebody else got there. */
export type WriteAnswer = 'updated' | 'already' | 'conflict';

/** JSON as it is stored in receipts, witnesses and the catalog. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };
export type JsonObject = { readonly [key: string]: Json | undefined };
