/**
 * What recovery does with what it finds (DESIGN §3, "Recovery"). Pure: the facts were read after the host lock was taken,
 * which proves that no earlier worker, guardian or runner of this host lives.
 *
 * First form: there is no revoker yet, so an effect without a witness is never judged by looking. What may be repeated is
 * repeated; anything else blocks.
 */
import type { EffectOutcome, Reason } from '#kernel';
import { PREFLIGHT_INTERRUPTIONS_MAX, STALLED_RESUMES_MAX } from '#kernel';
import { effectTraits, type EffectClass, type EffectKind } from './effects.ts';
import type { Receipt, Witness } from './records.ts';

export type ReceiptDecision =
  /** The catalog has this outcome: only the consuming was interrupted. */
  | { readonly do: 'consume' }
  | { readonly do: 'settle'; readonly witness: Witness }
  /** Whatever it did, or still does, a repetition does the same: it is settled as absent, and made again. */
  | { readonly do: 'repeat' }
  /** A case is open about it: the receipt stays until a decision has settled it. */
  | { readonly do: 'keep' }
  | { readonly do: 'block'; readonly reason: Reason };

/**
 * Classes whose effects may be made again without knowing what became of the first try (DESIGN §5): the exact id they act on
 * is the fence. A removal that works on late removes what is to be removed; a start that comes late finds the container
 * running, or removed by its id; what is harmless changes nothing.
 */
const REPEATED: Readonly<Record<EffectClass, boolean>> = {
  'transactional-sql': false,
  'exclusive-name': false,
  'compare-and-swap': false,
  removal: true,
  'start-stop': true,
  harmless: true,
};

/** Recovery makes an effect of this kind again when its outcome is not known; of any other kind it blocks. */
export function isRepeated(kind: EffectKind): boolean {
  return REPEATED[effectTraits(kind).class];
}

/** @param recorded the effect's row in the catalog; undefined when the catalog knows no such effect. */
export function decideReceipt(
  receipt: Receipt,
  recorded: { readonly token: string; readonly claimId: string; readonly outcome: EffectOutcome } | undefined,
  witness: Witness | undefined,
): ReceiptDecision {
  if (recorded === undefined)
    return block('receipt_unknown', `the catalog has no effect ${receipt.effectId}, which a receipt names`);
  if (recorded.token !== receipt.token || recorded.claimId !== receipt.claimId)
    return block(
      'receipt_contradicts',
      `receipt and catalog name different tokens or claims for effect ${receipt.effectId}`,
    );
  if (witness !== undefined && (witness.token !== receipt.token || witness.claimId !== receipt.claimId))
    return block(
      'witness_contradicts',
      `receipt and witness name different tokens or claims for effect ${receipt.effectId}`,
    );
  if (recorded.outcome === 'unknown') return { do: 'keep' };
  if (recorded.outcome !== 'pending') return { do: 'consume' };
  if (witness !== undefined) return { do: 'settle', witness };
  if (isRepeated(receipt.kind)) return { do: 'repeat' };
  return block('outcome_unknown', `${receipt.kind} was started and nothing on the host says how it ended`);
}

export type ClaimDecision =
  /** Nothing had been changed: back to the queue, counted. */
  | { readonly do: 'requeue'; readonly preflight: boolean }
  /** The bound is used up: undo what is there, or with nothing there just fail. */
  | { readonly do: 'abandon'; readonly reason: Reason }
  | { readonly do: 'block'; readonly reason: Reason };

/** A claim whose worker is gone, once every receipt that names it has been settled and consumed. */
export function decideClaim(facts: {
  /** Tokens of this claim that an engine knows and the catalog has not settled. */
  readonly unsettledTokens: number;
  /** Effects of the whole operation that settled as something else than `absent`. */
  readonly settledEffects: number;
  /** Effects that settled since the last interruption. */
  readonly progress: boolean;
  readonly preflightInterruptions: number;
  readonly stalledResumes: number;
  /** It was given up before: what is left is to undo what is there. */
  readonly abandoned: boolean;
  /** The worker left on request: that does not count. */
  readonly cleanStop: boolean;
  readonly onInterrupted: 'undo' | 'block';
}): ClaimDecision {
  if (facts.unsettledTokens > 0)
    return block(
      'token_without_receipt',
      'an engine knows a token of this claim that no receipt and no settled effect explains',
    );
  const preflight = facts.settledEffects === 0;
  if (facts.cleanStop) return { do: 'requeue', preflight };
  const stalled = !facts.progress && facts.stalledResumes >= STALLED_RESUMES_MAX;
  // An undo ends or blocks: it is not given up a second time.
  if (facts.abandoned) return stalled ? block('interrupted', STALLED) : { do: 'requeue', preflight: false };
  if (preflight)
    return facts.preflightInterruptions < PREFLIGHT_INTERRUPTIONS_MAX
      ? { do: 'requeue', preflight }
      : {
          do: 'abandon',
          reason: {
            code: 'interrupted_before_change',
            message: `interrupted ${PREFLIGHT_INTERRUPTIONS_MAX + 1} times before anything was changed`,
          },
        };
  if (!stalled) return { do: 'requeue', preflight };
  return facts.onInterrupted === 'undo'
    ? { do: 'abandon', reason: { code: 'interrupted', message: STALLED } }
    : block('interrupted', STALLED);
}

const STALLED = `interrupted ${STALLED_RESUMES_MAX + 1} times in a row at the same effect`;

function block(code: string, message: string): { readonly do: 'block'; readonly reason: Reason } {
  return { do: 'block', reason: { code, message } };
}
