/**
 * Record → act → settle: the one loop that carries out an operation, from the claim to its end, in first run and after
 * recovery alike. What comes next is decided by the plan, never here.
 *
 * Each boundary between two effects is one catalog transaction: the outcome of the one, the plan's next step, and the token
 * of the other, or the operation's end. The receipt of the first is consumed after it, the receipt of the second is durable
 * before its act (invariants 1 and 3).
 */
import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Catalog, Claim, EffectRow, EngineFinding, OperationInFull, Tx } from '#catalog';
import {
  blockOperation,
  finishOperation,
  isCancelled,
  loadOperation,
  noteProgress,
  recordEffect,
  settleEffect,
  settleUnstarted,
} from '#catalog';
import type { JsonObject, Logger } from '#kernel';
import { CLAIM_DEADLINE_MS, EFFECT_DEADLINE_MS } from '#kernel';
import type { EffectKind, EffectSpecs, Pin, PlannedEffect, Situation, Step } from '#protocol';
import { effectTraits, nextStep, RECORD_VERSION } from '#protocol';
import type { RecordFolders } from '#receipts';
import type { Settings } from '#settings';
import { enginePlace } from '#settings';
import type { Sealed } from './effect-secrets.ts';
import { loadSealed, openSealed } from './effect-secrets.ts';
import type { ActRequest } from './messages.ts';
import type { ActAnswer, Pair } from './pair.ts';
import { persistently } from './persistently.ts';
import type { KnownOutcome } from './settlement.ts';
import { settlementOf } from './settlement.ts';

export interface OperateParts {
  readonly settings: Settings;
  readonly sealingKey: Buffer;
  readonly catalog: Catalog;
  readonly records: RecordFolders;
  readonly pair: Pair;
  readonly log: Logger;
  /** Aborted when the worker is asked to stop: no new effect is begun after that. */
  readonly stopping: AbortSignal;
}

/**
 * How the loop was left. `lost`: an effect's outcome is not known here; recovery has to look. `expired`: the claim's time is
 * used up, so that its delivery is settled well before the broker's delivery timeout.
 */
export type OperateEnd = 'ended' | 'stopped' | 'expired' | 'lost';

interface Recorded {
  readonly effectId: string;
  readonly token: string;
  readonly planned: PlannedEffect;
  readonly full: OperationInFull;
  readonly sealed: Sealed;
}

interface Known extends KnownOutcome {
  readonly subject: Situation['subject'];
}

/** @param first the boundary that the claim's own transaction held */
export async function operate(parts: OperateParts, claim: Claim, first: Boundary): Promise<OperateEnd> {
  const { catalog, log } = parts;
  const endsAt = performance.now() + CLAIM_DEADLINE_MS;
  let known: Known | undefined;
  for (let next = first; ;) {
    const settled = known?.effectId;
    if (next === 'ended' || next === 'lost') {
      if (settled !== undefined && next === 'ended') parts.records.consume(settled);
      return next;
    }
    const leave = await reasonToLeave(parts, next, endsAt);
    if (leave !== undefined) {
      if (settled !== undefined) parts.records.consume(settled);
      // The token that was just recorded was never used, and is settled as absent when the claim is given back.
      return leave;
    }
    const [answer] = await Promise.all([act(parts, claim, next), consumeMeanwhile(parts, settled)]);
    const told = answer.outcome === 'lost' && answer.why === 'given-up' ? ABSENT : answer;
    if (told.outcome === 'lost' || told.outcome === 'unknown') {
      parts.log.warn('effect has no known outcome', { ...fieldsOf(claim, next), outcome: told.outcome });
      return 'lost';
    }
    parts.log.info('effect has an outcome', { ...fieldsOf(claim, next), outcome: told.outcome });
    known = {
      effectId: next.effectId,
      token: next.token,
      operationId: claim.operationId,
      claimId: claim.claimId,
      kind: next.planned.kind,
      outcome: told.outcome,
      facts: told.facts ?? {},
      reason: told.outcome === 'refused' ? told.reason : undefined,
      subject: next.full.situation.subject,
    };
    const ids = newIds();
    const settling = known;
    // Settling goes on while the worker is being stopped: only its grace period ends it.
    next = await persistently(log, NEVER, () => catalog.transaction((tx) => boundary(tx, parts, claim, ids, settling)));
  }
}

/** What was given up changed nothing, so it is as if it had not been tried. */
const ABSENT = { outcome: 'absent', facts: {} } as const;

/** Asked before the receipt: after it, only an outcome, a witness or recovery leads on. */
async function reasonToLeave(
  { pair, stopping }: OperateParts,
  next: Recorded,
  endsAt: number,
): Promise<'stopped' | 'expired' | undefined> {
  await pair.readyOr(stopping);
  if (stopping.aborted) return 'stopped';
  // An effect that is begun has its whole deadline.
  return performance.now() + deadlineOf(next.planned.kind) > endsAt ? 'expired' : undefined;
}

function deadlineOf(kind: EffectKind): number {
  return effectTraits(kind).deadlineMs ?? EFFECT_DEADLINE_MS;
}

/**
 * The outcome has committed, so its receipt can go. That takes two directory syncs, for which the next effect need not
 * wait: it is done once the next request is on its way to the runner.
 */
async function consumeMeanwhile({ records }: OperateParts, effectId: string | undefined): Promise<void> {
  if (effectId === undefined) return;
  await setImmediate();
  records.consume(effectId);
}

/** What a boundary comes to. `lost`: the claim is no longer ours to act under. */
export type Boundary = Recorded | 'ended' | 'lost';

/** Made before the transaction, so that its repetition is recognised. */
export function newIds(): EffectIds {
  return { effectId: randomUUID(), token: randomUUID() };
}

interface EffectIds {
  readonly effectId: string;
  readonly token: string;
}

/** One boundary, in the caller's transaction: settle what is known, then record what comes next, or end. */
export async function boundary(
  tx: Tx,
  { log }: Pick<OperateParts, 'log'>,
  claim: Claim,
  ids: EffectIds,
  known?: Known,
): Promise<Boundary> {
  // In this order and in one flight: what is loaded is what the settlement has made of it.
  const [settled, full] = await Promise.all([
    known === undefined ? 'updated' : settleEffect(tx, settlementOf(known, known.subject)),
    loadOperation(tx, claim.operationId),
  ]);
  if (settled === 'conflict') return 'lost';
  const step = stepOf(full, log);
  switch (step.do) {
    case 'finish':
      log.info('operation ends', { operationId: claim.operationId, claimId: claim.claimId, outcome: step.state });
      // What a first try of this very transaction may have recorded was never begun.
      await settleUnstarted(tx, claim.claimId);
      await finishOperation(tx, claim, step.state, step.reason, findingOf(full));
      return 'ended';
    case 'block':
      await blockOperation(tx, claim, step.reason, { kind: step.reason.code, evidence: {} });
      return 'ended';
    case 'effect': {
      // Read with the boundary, still sealed, so that the act waits for nothing.
      const recording = recordEffect(tx, {
        ...ids,
        operationId: claim.operationId,
        claimId: claim.claimId,
        claimNumber: claim.claimNumber,
        engineId: full.engine.id,
        kind: step.effect.kind,
        spec: step.effect.spec as unknown as JsonObject,
        resource: resourceOf(full),
      });
      const [answer, sealed] = await Promise.all([recording, loadSealed(tx, step.effect, full)]);
      if (answer === 'conflict') return 'lost';
      return { ...ids, planned: step.effect, full, sealed };
    }
    default:
      return step satisfies never;
  }
}

/** A plan that cannot go on is this operation's trouble, and nobody else's: it blocks, and the worker works on. */
function stepOf({ operation, situation }: OperationInFull, log: Logger): Step {
  try {
    return nextStep(operation.kind, situation);
  } catch (error) {
    log.error('no plan leads on', { operationId: operation.id, error });
    const message = error instanceof Error ? error.message : String(error);
    return { do: 'block', reason: { code: 'plan_failed', message } };
  }
}

const NEVER = new AbortController().signal;

/** Receipt, then the act. */
async function act(parts: OperateParts, claim: Claim, recorded: Recorded): Promise<ActAnswer> {
  const { settings, sealingKey, catalog, records, pair } = parts;
  const { effectId, token, planned, full } = recorded;
  const resource = resourceOf(full);
  const secrets = openSealed(sealingKey, settings, recorded);
  // Nothing has been begun: one environment's broken secret fails that environment, and nobody else.
  if (secrets === undefined)
    return { outcome: 'refused', reason: { code: 'secret_unreadable', message: 'a stored credential does not open' } };
  records.publishReceipt({
    version: RECORD_VERSION,
    installation: settings.installation,
    host: settings.hostId,
    jobId: claim.jobId,
    operationId: claim.operationId,
    claimId: claim.claimId,
    attempt: claim.attempt,
    claimNumber: claim.claimNumber,
    effectId,
    kind: planned.kind,
    resource,
    token,
    createdAt: new Date().toISOString(),
  });
  const request: ActRequest = {
    type: 'act',
    claimId: claim.claimId,
    kind: planned.kind,
    spec: planned.spec,
    engine: enginePlace(settings, full.engine),
    inHand: { token, effectId, attempt: claim.attempt, claimNumber: claim.claimNumber, resource },
    secrets,
    deadlineMs: deadlineOf(planned.kind),
  };
  const answer = pair.act(request, (text) => {
    // For people alone: one that does not get through is followed by another.
    noteProgress(catalog, claim.operationId, claim.claimId, text).catch(() => undefined);
  });
  if (effectTraits(planned.kind).class !== 'harmless') return answer;
  const over = new AbortController();
  void giveUpOnCancel(parts, claim, effectId, over.signal);
  return answer.finally(() => over.abort());
}

/** What changes nothing need not be waited for once nobody wants what it waits for. */
async function giveUpOnCancel(
  { catalog, pair }: OperateParts,
  claim: Claim,
  effectId: string,
  over: AbortSignal,
): Promise<void> {
  for (;;) {
    await setTimeout(CANCEL_LOOK_MS, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
    // A catalog that is away has not said that it is cancelled.
    if (!(await isCancelled(catalog, claim.operationId).catch(() => false))) continue;
    pair.giveUp(effectId);
    return;
  }
}

const CANCEL_LOOK_MS = 1_000;

function resourceOf({ engine, environment }: OperationInFull): string {
  return environment === undefined ? `engine ${engine.name}` : `engine ${engine.name} / environment ${environment.id}`;
}

/** What an engine operation has found out by its end: the pin, and the rule generation in force. */
function findingOf({ situation, effects }: OperationInFull): EngineFinding | undefined {
  if (situation.subject.type !== 'engine') return undefined;
  const settled = (kind: EffectKind): EffectRow | undefined =>
    effects.findLast((effect) => effect.kind === kind && effect.outcome === 'applied');
  const ready = settled('engine-ready');
  const rules = settled('rule-file');
  // A start finds the engine as it was pinned, and makes no new generation of anything.
  if (rules === undefined) return undefined;
  const { profiles } = rules.spec as unknown as EffectSpecs['rule-file'];
  return {
    ...(ready === undefined
      ? {}
      : {
          pinned: {
            pin: ready.facts['pin'] as unknown as Pin,
            extensions: ready.facts['extensions'] as readonly string[],
          },
        }),
    ruleGeneration: {
      generation: rules.facts['generation'] as number,
      digest: rules.facts['digest'] as string,
      profiles: profiles.map(({ name }) => name),
    },
  };
}

function fieldsOf(claim: Claim, { planned, effectId, token }: Recorded): Record<string, string | number> {
  return {
    operationId: claim.operationId,
    claimId: claim.claimId,
    attempt: claim.attempt,
    effect: planned.kind,
    effectId,
    token,
  };
}
