/**
 * One job at a time, whoever brings it: a message, or the periodic look for jobs whose message was lost. Both end in `run`.
 */
import { randomUUID } from 'node:crypto';
import type { Claim, EngineRow, OpenJob } from '#catalog';
import {
  CatalogFateUnknown,
  CatalogUnavailable,
  claimJob,
  failQueued,
  noteHeld,
  noteWaiting,
  openJob,
  openJobs,
} from '#catalog';
import { EngineAway } from '#engines';
import { writeEpoch } from '#receipts';
import type { Boundary, OperateParts } from './operate.ts';
import { boundary, newIds, operate } from './operate.ts';
import { persistently, Stopped } from './persistently.ts';
import type { Places } from './places.ts';
import type { RecoverParts } from './recover.ts';
import { giveBack } from './recover.ts';
import { recoverPatiently } from './start-up.ts';

export interface JobParts extends OperateParts {
  readonly places: Places;
  readonly recovery: RecoverParts;
  /** The process stops then, and recovery decides at its next start. */
  readonly onFatal: (error: unknown) => void;
}

/** The catalog is away, or the worker is asked to stop: the job is met again. */
function isPassing(error: unknown): boolean {
  return error instanceof Stopped || error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown;
}

/** Jobs that one look takes in; what is beyond comes with the next, as these run. */
const LOOK_LIMIT = 100;

export class Jobs {
  readonly #parts: JobParts;
  /** The end of the line: each job waits for the one before. */
  #last: Promise<void> = Promise.resolve();
  #running = 0;

  constructor(parts: JobParts) {
    this.#parts = parts;
  }

  /** A job is being carried out, which is a look in itself. */
  get busy(): boolean {
    return this.#running > 0;
  }

  /** Returns when the job has ended, blocked, or turned out not to be runnable now. */
  run(jobId: string): Promise<void> {
    this.#running += 1;
    const turn = this.#last.then(() => this.#runNow(jobId)).finally(() => (this.#running -= 1));
    this.#last = turn.catch((error: unknown) => {
      // A record that could not be written, and whatever else should not be: nothing is done on top of it.
      if (!isPassing(error)) this.#parts.onFatal(error);
    });
    return turn;
  }

  /** Runs what is open, oldest first, and says of the rest what it waits for. */
  async look(): Promise<void> {
    const { catalog, settings, places } = this.#parts;
    const jobs = await openJobs(catalog, settings.hostId, LOOK_LIMIT);
    const hindered = new Map<string, string[]>();
    for (const job of jobs) {
      if (this.#parts.stopping.aborted) return;
      const hindrance = await places.hindrance(job);
      // What can run is compared once more at its turn, which may come much later.
      if (hindrance === undefined) await this.run(job.jobId);
      else hindered.set(hindrance, [...(hindered.get(hindrance) ?? []), job.jobId]);
    }
    for (const [hindrance, jobIds] of hindered) await noteWaiting(catalog, jobIds, hindrance);
    await noteHeld(catalog, settings.hostId);
  }

  async #runNow(jobId: string): Promise<void> {
    const { catalog, settings, log, stopping, places } = this.#parts;
    if (stopping.aborted) return;
    const job = await persistently(log, stopping, () => openJob(catalog, settings.hostId, jobId));
    if (job === undefined) return;
    const claimed = await this.#claim(job);
    if (claimed === undefined) return;
    const { claim, first } = claimed;
    const end = await operate(this.#parts, claim, first);
    if (end === 'stopped') await this.#returnClaim(claim);
    if (end === 'expired') await recoverPatiently(this.#parts.recovery, places, stopping);
    if (end === 'lost') await this.#recover();
  }

  /** A stop on request counts as no interruption. What is away then is met by the next start, which counts it. */
  async #returnClaim(claim: Claim): Promise<void> {
    try {
      await giveBack(this.#parts.recovery, claim, true);
    } catch (error) {
      if (!isPassing(error) && !(error instanceof EngineAway)) throw error;
      this.#parts.log.warn('claim is left to the next start', { claimId: claim.claimId, error });
    }
  }

  /** The claim and its first boundary are one transaction. */
  async #claim(
    job: OpenJob & { readonly engine: EngineRow },
  ): Promise<{ readonly claim: Claim; readonly first: Boundary } | undefined> {
    const { catalog, settings, log, stopping, places } = this.#parts;
    if (job.engineState === 'failed') {
      const reason = { code: 'engine_failed', message: `engine ${job.engineName} could not be created` };
      await persistently(log, stopping, () => catalog.transaction((tx) => failQueued(tx, job.operationId, reason)));
      return undefined;
    }
    const hindrance = await places.hindrance(job, job.engine);
    if (hindrance !== undefined) {
      await persistently(log, stopping, () => noteWaiting(catalog, [job.jobId], hindrance));
      return undefined;
    }
    const claimId = randomUUID();
    const ids = newIds();
    const answer = await persistently(log, stopping, () =>
      catalog.transaction(async (tx) => {
        const claimed = await claimJob(tx, job.jobId, settings.hostId, claimId);
        if (claimed.answer !== 'claimed') return claimed;
        return { ...claimed, first: await boundary(tx, this.#parts, claimed.claim, ids) };
      }),
    );
    switch (answer.answer) {
      case 'claimed':
        log.info('job claimed', {
          jobId: job.jobId,
          operationId: job.operationId,
          claimId,
          attempt: answer.claim.attempt,
        });
        // The catalog knows the number; the host must, durably, before the first receipt.
        writeEpoch(settings.paths.epoch, { identity: places.hostIdentity, claimNumber: answer.claim.claimNumber });
        return { claim: answer.claim, first: answer.first };
      case 'waiting':
        await persistently(log, stopping, () => noteWaiting(catalog, [job.jobId], answer.for));
        return undefined;
      case 'revoked':
        await persistently(log, stopping, () =>
          catalog.transaction((tx) => failQueued(tx, answer.operationId, answer.reason)),
        );
        return undefined;
      case 'none':
        return undefined;
      default:
        return answer satisfies never;
    }
  }

  /** Nothing of the pair may act any more when receipts are judged. */
  async #recover(): Promise<void> {
    const { pair, places, recovery, stopping } = this.#parts;
    // Stopped beyond its grace: the receipt is left to the next start.
    if (stopping.aborted) return;
    await pair.replace();
    await recoverPatiently(recovery, places, stopping);
  }
}
