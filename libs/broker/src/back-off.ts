/** Waits that grow: the first retry is nearly at once, a long outage costs one attempt every two seconds. */
import { setTimeout } from 'node:timers/promises';

const FIRST_MS = 50;
const MOST_MS = 2_000;

export class BackOff {
  #nextMs = FIRST_MS;

  reset(): void {
    this.#nextMs = FIRST_MS;
  }

  /** Ends early, without an error, when `signal` says so. */
  async wait(signal: AbortSignal): Promise<void> {
    // Spread, so that processes which lost the same broker do not come back in step.
    const waitMs = this.#nextMs * (0.75 + Math.random() * 0.25);
    this.#nextMs = Math.min(this.#nextMs * 2, MOST_MS);
    await setTimeout(waitMs, undefined, { signal }).catch(() => undefined);
  }
}
