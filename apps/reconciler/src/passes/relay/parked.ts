/**
 * Rows that no queue takes at present. They are tried again after a while, and meanwhile stand in nobody's way: one job for
 * a queue that is gone must not delay the jobs of all others.
 */
import type { Logger } from '#kernel';

const RETRY_MS = 5_000;
/** Beyond this many something larger is wrong, and the relay takes no more until some are delivered. */
export const PARKED_MAX = 1_000;

export class Parked {
  readonly #logger: Logger;
  readonly #now: () => number;
  /** By outbox id, when it is tried again. */
  readonly #retryAtMs = new Map<string, number>();

  /** @param now milliseconds of a clock that only grows */
  constructor(logger: Logger, now: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#now = now;
  }

  /** Not to be taken yet. */
  get waiting(): readonly string[] {
    const now = this.#now();
    return [...this.#retryAtMs].filter(([, retryAtMs]) => retryAtMs > now).map(([id]) => id);
  }

  /** Logged when there begins to be one, and when there is none any more. */
  note({
    published,
    undelivered,
  }: {
    readonly published: readonly string[];
    readonly undelivered: readonly string[];
  }): void {
    const before = this.#retryAtMs.size;
    for (const id of published) this.#retryAtMs.delete(id);
    for (const id of undelivered) this.#retryAtMs.set(id, this.#now() + RETRY_MS);
    const after = this.#retryAtMs.size;
    if (before === 0 && after > 0)
      this.#logger.warn('outbox rows wait for a queue that takes them', { rows: undelivered.slice(0, 10) });
    if (before > 0 && after === 0) this.#logger.info('no outbox row waits for a queue any more');
  }
}
