/**
 * Receipt and witness: their content (DESIGN §1, §3). How they are made durable is libs/receipts' business.
 */
import type { ActOutcome, Reason } from '#kernel';
import type { EffectFacts, EffectKind } from './effects.ts';

export const RECORD_VERSION = 1;

/** Durable before the effect starts. Names exactly who acts on what under which permission, and no secret. */
export interface Receipt {
  readonly version: typeof RECORD_VERSION;
  readonly installation: string;
  readonly host: string;
  readonly jobId: string;
  readonly operationId: string;
  readonly claimId: string;
  /** Only grows, per operation. */
  readonly attempt: number;
  /** Only grows, per host; see age.ts. */
  readonly claimNumber: number;
  readonly effectId: string;
  readonly kind: EffectKind;
  /** What is changed, for people: `engine main / database …`. */
  readonly resource: string;
  readonly token: string;
  /** ISO 8601, for people; nothing is decided by it. */
  readonly createdAt: string;
}

/** Durable before anybody is told. Exists only for a known outcome. */
export interface Witness {
  readonly version: typeof RECORD_VERSION;
  readonly claimId: string;
  readonly effectId: string;
  readonly token: string;
  readonly outcome: Exclude<ActOutcome, 'unknown'>;
  readonly facts: EffectFacts;
  readonly reason?: Reason;
  readonly createdAt: string;
}
