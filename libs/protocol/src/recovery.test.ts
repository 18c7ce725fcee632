import { describe, expect, test } from '@jest/globals';
import type { EffectOutcome } from '#kernel';
import { EFFECT_OUTCOMES, PREFLIGHT_INTERRUPTIONS_MAX, STALLED_RESUMES_MAX } from '#kernel';
import type { EffectKind } from './effects.ts';
import { EFFECTS } from './effects.ts';
import type { Receipt, Witness } from './records.ts';
import { decideClaim, decideReceipt } from './recovery.ts';

const TOKEN = '11111111-1111-4111-8111-111111111111';
const CLAIM = '22222222-2222-4222-8222-222222222222';
const OTHER = '33333333-3333-4333-8333-333333333333';

const receipt: Receipt = {
  version: 1,
  installation: OTHER,
  host: 'local',
  jobId: OTHER,
  operationId: OTHER,
  claimId: CLAIM,
  attempt: 1,
  claimNumber: 1,
  effectId: OTHER,
  kind: 'roles',
  resource: 'engine main',
  token: TOKEN,
  createdAt: '2026-01-01T00:00:00.000Z',
};
const witness = (changes: Partial<Witness> = {}): Witness => ({
  version: 1,
  claimId: CLAIM,
  effectId: OTHER,
  token: TOKEN,
  outcome: 'applied',
  facts: {},
  createdAt: '2026-01-01T00:00:01.000Z',
  ...changes,
});

type Recorded = { token: string; claimId: string; outcome: EffectOutcome } | undefined;
const RECORDED: readonly Recorded[] = [
  undefined,
  ...EFFECT_OUTCOMES.flatMap((outcome) =>
    [TOKEN, OTHER].flatMap((token) => [CLAIM, OTHER].map((claimId) => ({ token, claimId, outcome }))),
  ),
];
const WITNESSES: readonly (Witness | undefined)[] = [
  undefined,
  ...(['applied', 'refused'] as const).flatMap((outcome) =>
    [TOKEN, OTHER].flatMap((token) => [CLAIM, OTHER].map((claimId) => witness({ outcome, token, claimId }))),
  ),
];

/** The table of DESIGN §3, said another way: what has to be true for each decision. */
function expected(recorded: Recorded, found: Witness | undefined): string {
  if (recorded === undefined) return 'block receipt_unknown';
  if (recorded.token !== TOKEN || recorded.claimId !== CLAIM) return 'block receipt_contradicts';
  if (found !== undefined && (found.token !== TOKEN || found.claimId !== CLAIM)) return 'block witness_contradicts';
  if (recorded.outcome === 'pending') return found === undefined ? 'block outcome_unknown' : `settle ${found.outcome}`;
  return recorded.outcome === 'unknown' ? 'keep' : 'consume';
}

describe('a receipt that recovery finds', () => {
  test('every combination of what the catalog says and what the witness says has the one decision of the table', () => {
    for (const recorded of RECORDED)
      for (const found of WITNESSES) {
        const decision = decideReceipt(receipt, recorded, found);
        const said =
          decision.do === 'block'
            ? `block ${decision.reason.code}`
            : decision.do === 'settle'
              ? `settle ${decision.witness.outcome}`
              : decision.do;
        expect({ recorded, found, said }).toEqual({ recorded, found, said: expected(recorded, found) });
      }
  });

  test('no witness, and an outcome that is not known: never settled, never consumed, always blocked (invariants 4 and 7)', () => {
    const decision = decideReceipt(receipt, { token: TOKEN, claimId: CLAIM, outcome: 'pending' }, undefined);
    expect(decision).toMatchObject({ do: 'block', reason: { code: 'outcome_unknown' } });
  });

  test('without a witness, what may be repeated is repeated, and nothing else', () => {
    const pending = { token: TOKEN, claimId: CLAIM, outcome: 'pending' as const };
    const repeated = (Object.keys(EFFECTS) as EffectKind[]).filter(
      (kind) => decideReceipt({ ...receipt, kind }, pending, undefined).do === 'repeat',
    );
    expect(repeated.sort()).toEqual(
      [
        'disown',
        'drop-database',
        'engine-ready',
        'engine-start',
        'healthy',
        'image',
        'join-network',
        'leave-network',
        'probe',
        'publish-service',
        'remove-container',
        'remove-engine-files',
        'remove-network',
        'remove-port-network',
        'remove-service',
        'remove-volume',
        'secrets',
        'start',
      ].sort(),
    );
  });

  test('however often it is interrupted, an operation is requeued a bounded number of times without progress (invariant 8)', () => {
    for (const onInterrupted of ['undo', 'block'] as const)
      for (const settledEffects of [0, 3]) {
        let state = { preflightInterruptions: 0, stalledResumes: 0, abandoned: false };
        let rounds = 0;
        for (let over = false; !over; rounds += 1) {
          expect(rounds).toBeLessThan(12);
          const facts = { unsettledTokens: 0, settledEffects, progress: false, cleanStop: false, onInterrupted };
          const decision = decideClaim({ ...facts, ...state });
          // What the catalog does with the decision: see REQUEUE.
          if (decision.do === 'abandon') state = { ...state, stalledResumes: 0, abandoned: true };
          else if (decision.do === 'requeue' && decision.preflight)
            state = { ...state, preflightInterruptions: state.preflightInterruptions + 1 };
          else if (decision.do === 'requeue') state = { ...state, stalledResumes: state.stalledResumes + 1 };
          else over = true;
        }
      }
  });

  test('a witness is settled whole, with its facts and its reason', () => {
    const found = witness({ outcome: 'refused', facts: { a: 1 }, reason: { code: 'c', message: 'm' } });
    expect(decideReceipt(receipt, { token: TOKEN, claimId: CLAIM, outcome: 'pending' }, found)).toEqual({
      do: 'settle',
      witness: found,
    });
  });
});

type Facts = Parameters<typeof decideClaim>[0];
const COMBINATIONS: readonly Facts[] = [0, 1, 2].flatMap((unsettledTokens) =>
  [0, 1, 5].flatMap((settledEffects) =>
    [true, false].flatMap((progress) =>
      [0, 1, PREFLIGHT_INTERRUPTIONS_MAX - 1, PREFLIGHT_INTERRUPTIONS_MAX, 9].flatMap((preflightInterruptions) =>
        [0, STALLED_RESUMES_MAX - 1, STALLED_RESUMES_MAX, 9].flatMap((stalledResumes) =>
          [true, false].flatMap((cleanStop) =>
            [true, false].flatMap((abandoned) =>
              (['undo', 'block'] as const).map((onInterrupted) => ({
                unsettledTokens,
                settledEffects,
                progress,
                preflightInterruptions,
                stalledResumes,
                abandoned,
                cleanStop,
                onInterrupted,
              })),
            ),
          ),
        ),
      ),
    ),
  ),
);

function expectedOfClaim(facts: Facts): string {
  if (facts.unsettledTokens > 0) return 'block token_without_receipt';
  const preflight = facts.settledEffects === 0;
  if (facts.cleanStop) return `requeue ${preflight}`;
  if (facts.abandoned) return facts.progress || facts.stalledResumes < 3 ? 'requeue false' : 'block interrupted';
  if (preflight) return facts.preflightInterruptions < 3 ? 'requeue true' : 'abandon interrupted_before_change';
  if (facts.progress || facts.stalledResumes < 3) return 'requeue false';
  return facts.onInterrupted === 'undo' ? 'abandon interrupted' : 'block interrupted';
}

describe('a claim that was left behind', () => {
  test('every combination of the facts has the one decision that the design names', () => {
    for (const facts of COMBINATIONS) {
      const decision = decideClaim(facts);
      const said =
        decision.do === 'requeue' ? `requeue ${decision.preflight}` : `${decision.do} ${decision.reason.code}`;
      expect({ ...facts, said }).toEqual({ ...facts, said: expectedOfClaim(facts) });
    }
  });

  test('an operation that is interrupted again and again before any change is requeued three times, then given up (invariant 8)', () => {
    let requeued = 0;
    const facts = {
      unsettledTokens: 0,
      settledEffects: 0,
      progress: false,
      stalledResumes: 0,
      abandoned: false,
      cleanStop: false,
      onInterrupted: 'undo' as const,
    };
    while (decideClaim({ ...facts, preflightInterruptions: requeued }).do === 'requeue') requeued += 1;
    expect(requeued).toBe(3);
  });

  test('a token that an engine knows and nothing explains blocks, even after a clean stop', () => {
    for (const facts of COMBINATIONS.filter((one) => one.unsettledTokens > 0))
      expect(decideClaim(facts)).toMatchObject({ do: 'block', reason: { code: 'token_without_receipt' } });
  });
});
