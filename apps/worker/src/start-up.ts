/** From the lock to the first claim: ages, pins, receipts, the claim that was left behind. Waits for what is away. */
import { setTimeout } from 'node:timers/promises';
import type { Catalog } from '#catalog';
import { CatalogUnavailable, refusePlace } from '#catalog';
import type { Logger } from '#kernel';
import type { RecordFolders } from '#receipts';
import { UnreadableRecord } from '#receipts';
import type { Settings } from '#settings';
import { Stopped } from './persistently.ts';
import { EngineAway } from '#engines';
import type { Places } from './places.ts';
import type { RecoverParts } from './recover.ts';
import { ReceiptUnexplained, recover } from './recover.ts';

interface StartUpParts {
  readonly catalog: Catalog;
  readonly settings: Settings;
  readonly records: RecordFolders;
  readonly places: Places;
  readonly log: Logger;
  readonly stopping: AbortSignal;
}

const RETRY_PAUSE_MS = 1_000;

/** Returns once nothing of an earlier worker is open any more. @throws Stopped */
export async function startUp(parts: StartUpParts): Promise<RecoverParts> {
  const { catalog, records, places, log, settings, stopping } = parts;
  const recovery: RecoverParts = {
    hostId: settings.hostId,
    catalog,
    records,
    log,
    countKnownTokens: (engineId, tokens) => places.countKnownTokens(engineId, tokens),
  };
  for (let told = ''; ;) {
    const waitingFor = await attempt(parts, recovery);
    if (waitingFor === undefined) return recovery;
    if (waitingFor !== told) log.warn('recovering: waiting', { detail: waitingFor });
    told = waitingFor;
    if (stopping.aborted) throw new Stopped('stopped during recovery');
    await setTimeout(RETRY_PAUSE_MS, undefined, { signal: stopping }).catch(() => undefined);
  }
}

/** @returns what recovery has to wait for; undefined when it is through */
async function attempt(parts: StartUpParts, recovery: RecoverParts): Promise<string | undefined> {
  const { catalog, places, settings } = parts;
  try {
    const refusal = await places.checkHost();
    if (refusal !== undefined) return refusal.message;
    await places.lookAtEngines();
    await recover(recovery);
    return undefined;
  } catch (error) {
    if (error instanceof CatalogUnavailable) return 'the catalog';
    if (error instanceof EngineAway) return error.message;
    if (!(error instanceof UnreadableRecord || error instanceof ReceiptUnexplained)) throw error;
    // Nothing that is missing counts as absent on this host now.
    const reason = { code: 'unreadable_record', message: error.message };
    await refusePlace(catalog, { hostId: settings.hostId }, reason);
    return error.message;
  }
}
