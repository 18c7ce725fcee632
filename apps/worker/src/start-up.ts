/** Recovery carried to its end: ages, pins, receipts, the claim that was left behind. Waits for what is away. */
import { setTimeout } from 'node:timers/promises';
import { CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import { EngineAway } from '#engines';
import type { Reason } from '#kernel';
import { UnreadableRecord } from '#receipts';
import { Stopped } from './persistently.ts';
import type { Places } from './places.ts';
import type { RecoverParts } from './recover.ts';
import { ReceiptUnexplained, recover } from './recover.ts';

const RETRY_PAUSE_MS = 1_000;

/** Returns once nothing of an earlier claim is open any more. @throws Stopped */
export async function recoverPatiently(recovery: RecoverParts, places: Places, stopping: AbortSignal): Promise<void> {
  for (let told = ''; ;) {
    const waitingFor = await attempt(recovery, places);
    if (waitingFor === undefined) return;
    if (waitingFor !== told) recovery.log.warn('recovering: waiting', { detail: waitingFor });
    told = waitingFor;
    if (stopping.aborted) throw new Stopped('stopped during recovery');
    await setTimeout(RETRY_PAUSE_MS, undefined, { signal: stopping }).catch(() => undefined);
  }
}

/** @returns what recovery has to wait for; undefined when it is through */
async function attempt(recovery: RecoverParts, places: Places): Promise<string | undefined> {
  try {
    const refusal = await places.compareHost();
    if (refusal !== undefined) return await refuse(places, refusal);
    await places.lookAtEngines();
    await recover(recovery);
    await places.recordHost(undefined);
    return undefined;
  } catch (error) {
    if (error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown) return 'the catalog';
    if (error instanceof EngineAway) return error.message;
    if (!(error instanceof UnreadableRecord || error instanceof ReceiptUnexplained)) throw error;
    // Nothing that is missing counts as absent on this host now.
    return refuse(places, { code: 'unreadable_record', message: error.message });
  }
}

async function refuse(places: Places, reason: Reason): Promise<string> {
  await places.recordHost(reason);
  return reason.message;
}
