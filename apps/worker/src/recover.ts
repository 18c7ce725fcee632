/**
 * Recovery: at worker start, and whenever an effect's outcome was lost (DESIGN §3). The host lock is held, and the guardian
 * and runner of the lost effect have been reaped, so nothing on this host can still act.
 *
 * First form: a witness settles; what may be repeated is settled as absent and made again; proven absence requeues, within
 * bounds; anything else blocks its environment with a case.
 * The late effects of a backend or a daemon that outlived its client touch only that environment's own objects, on which
 * nobody acts while it is blocked.
 */
import type { Catalog, Claim } from '#catalog';
import {
  blockOperation,
  findEffect,
  liveClaim,
  loadOperation,
  requeueOperation,
  settleEffect,
  settleUnstarted,
  tokensOfClaim,
} from '#catalog';
import type { JsonObject, Logger, Reason } from '#kernel';
import type { Receipt, Witness } from '#protocol';
import { decideClaim, decideReceipt, OPERATIONS } from '#protocol';
import type { RecordFolders } from '#receipts';
import type { KnownOutcome } from './settlement.ts';
import { settlementOf } from './settlement.ts';

export interface RecoverParts {
  readonly hostId: string;
  readonly catalog: Catalog;
  readonly records: RecordFolders;
  readonly log: Logger;
  /** How many of these tokens the engine, or the daemon, knows. Waits while it cannot be asked. */
  readonly countKnownTokens: (engineId: string, tokens: readonly string[]) => Promise<number>;
}

/**
 * Settles every receipt and gives back the claim that was left behind.
 * @throws UnreadableRecord: nothing may be taken for absent on this host then
 */
export async function recover(parts: RecoverParts): Promise<void> {
  parts.records.tidy();
  for (const receipt of parts.records.readReceipts()) await settleReceipt(parts, receipt);
  const claim = await liveClaim(parts.catalog, parts.hostId);
  if (claim !== undefined) await giveBack(parts, claim);
}

async function settleReceipt(parts: RecoverParts, receipt: Receipt): Promise<void> {
  const { catalog, records, log } = parts;
  const { effectId, kind, operationId, claimId, token } = receipt;
  const witness = records.readWitness(effectId);
  const recorded = await findEffect(catalog, effectId);
  if (recorded !== undefined && recorded.operation_id !== operationId)
    throw new ReceiptUnexplained(`receipt and catalog name different operations for effect ${effectId}`);
  const decision = decideReceipt(
    receipt,
    recorded === undefined
      ? undefined
      : { token: recorded.token, claimId: recorded.claim_id, outcome: recorded.outcome },
    witness,
  );
  // One that is kept is met at every look, and its case has told of it.
  if (decision.do !== 'keep')
    log.info('receipt found', { operationId, claimId, effect: kind, effectId, token, outcome: decision.do });
  switch (decision.do) {
    case 'consume':
      records.consume(effectId);
      return;
    case 'settle':
      await settle(parts, receipt, decision.witness);
      return;
    case 'repeat':
      await settle(parts, receipt, { outcome: 'absent', facts: {} });
      return;
    case 'keep':
      return;
    case 'block':
      // No case of an operation can name an effect that the catalog does not have.
      if (recorded === undefined) throw new ReceiptUnexplained(decision.reason.message);
      await block(parts, receipt, decision.reason, witness);
      return;
    default:
      decision satisfies never;
  }
}

/** Receipt and catalog are not each other's. The host takes no work until that is explained. */
export class ReceiptUnexplained extends Error {}

/** The outcome commits, then the receipt goes; an outcome that could not be recorded keeps its receipt. */
async function settle(
  { catalog, records }: RecoverParts,
  receipt: Receipt,
  known: Pick<KnownOutcome, 'outcome' | 'facts' | 'reason'>,
): Promise<void> {
  const answer = await catalog.transaction(async (tx) => {
    const { situation } = await loadOperation(tx, receipt.operationId);
    return settleEffect(tx, settlementOf({ ...receipt, ...known }, situation.subject));
  });
  if (answer === 'conflict')
    throw new ReceiptUnexplained(`the outcome of effect ${receipt.effectId} cannot be recorded under its claim`);
  records.consume(receipt.effectId);
}

/**
 * What cannot be blocked under the claim that the receipt names, and is not blocked under it already, belongs to no
 * operation that is being carried out.
 */
async function block(
  { catalog }: RecoverParts,
  receipt: Receipt,
  reason: Reason,
  witness: Witness | undefined,
): Promise<void> {
  const blocked = await catalog.transaction(async (tx) => {
    const answer = await blockOperation(tx, claimOf(receipt), reason, {
      kind: reason.code,
      effectId: receipt.effectId,
      evidence: {
        receipt: receipt as unknown as JsonObject,
        witness: (witness as unknown as JsonObject | undefined) ?? null,
      },
    });
    if (answer === 'updated') return true;
    const { operation } = await loadOperation(tx, receipt.operationId);
    return operation.state === 'blocked' && operation.claim_id === receipt.claimId;
  });
  if (!blocked) throw new ReceiptUnexplained(reason.message);
}

/** A claim whose receipts are all settled: what it recorded beyond them was never started. */
export async function giveBack(parts: RecoverParts, claim: Claim, cleanStop = false): Promise<void> {
  const { catalog, log, countKnownTokens } = parts;
  const open = (await tokensOfClaim(catalog, claim.claimId)).filter((token) => !token.settled);
  const engineId = open[0]?.engineId;
  const unsettledTokens =
    engineId === undefined
      ? 0
      : await countKnownTokens(
          engineId,
          open.map(({ token }) => token),
        );
  await catalog.transaction(async (tx) => {
    if (unsettledTokens === 0) await settleUnstarted(tx, claim.claimId);
    const { operation, effects } = await loadOperation(tx, claim.operationId);
    const settledEffects = effects.filter(({ outcome }) => outcome !== 'absent' && outcome !== 'pending').length;
    const decision = decideClaim({
      unsettledTokens,
      settledEffects,
      progress: settledEffects > operation.effects_at_resume,
      preflightInterruptions: operation.preflight_interruptions,
      stalledResumes: operation.stalled_resumes,
      abandoned: operation.abandon !== null,
      cleanStop,
      onInterrupted: OPERATIONS[operation.kind].onInterrupted,
    });
    log.info('claim given back', { operationId: claim.operationId, claimId: claim.claimId, outcome: decision.do });
    switch (decision.do) {
      case 'requeue':
        await requeueOperation(
          tx,
          claim,
          cleanStop ? 'none' : decision.preflight ? 'preflight' : 'resume',
          settledEffects,
        );
        return;
      case 'abandon':
        // The plan undoes what is there, and fails the operation with this reason.
        await requeueOperation(tx, claim, 'none', settledEffects, decision.reason);
        return;
      case 'block':
        await blockOperation(tx, claim, decision.reason, {
          kind: decision.reason.code,
          evidence: { tokens: open.map(({ token }) => token) },
        });
        return;
      default:
        decision satisfies never;
    }
  });
}

function claimOf(receipt: Receipt): Claim {
  return {
    claimId: receipt.claimId,
    jobId: receipt.jobId,
    operationId: receipt.operationId,
    hostId: receipt.host,
    attempt: receipt.attempt,
    claimNumber: receipt.claimNumber,
  };
}
