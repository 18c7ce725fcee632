import type { Settlement } from '#catalog';
import type { Reason } from '#kernel';
import type { EffectFacts, EffectKind, Identities, Situation } from '#protocol';
import { effectTraits, identitiesAfter } from '#protocol';

/** A known outcome, from the runner itself or from its witness. */
export interface KnownOutcome {
  readonly effectId: string;
  readonly token: string;
  readonly operationId: string;
  readonly claimId: string;
  readonly kind: EffectKind;
  /** `absent`: in recovery only. */
  readonly outcome: 'applied' | 'refused' | 'absent';
  readonly facts: EffectFacts;
  readonly reason?: Reason | undefined;
}

/** What the catalog is told about it: the same in first run and in recovery. */
export function settlementOf(known: KnownOutcome, subject: Situation['subject']): Settlement {
  const { effectId, token, operationId, claimId, kind, outcome, facts, reason } = known;
  const identities = outcome === 'applied' ? identitiesAfter(subject.identities, kind, facts) : subject.identities;
  return {
    effectId,
    token,
    operationId,
    claimId,
    outcome,
    facts,
    ...(reason === undefined ? {} : { reason }),
    undoes: effectTraits(kind).undoes ?? [],
    ...changed(subject.identities, identities),
    subject: { type: subject.type, id: subject.id },
  };
}

function changed(before: Identities, after: Identities): { readonly identities?: Identities } {
  return before === after ? {} : { identities: after };
}
