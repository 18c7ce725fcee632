import { setTimeout } from 'node:timers/promises';

/** Of all logs of a host together. The worker's own work comes first, and what a log holds can wait in its file. */
const BYTES_PER_MS = 8 * 1024;

/** One at a time, in order, and with pauses that keep the whole below a rate. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @param bytes what the work moves */
  take<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    const pauseMs = Math.floor(bytes / BYTES_PER_MS);
    this.#last = turn.then(
      () => (pauseMs === 0 ? undefined : setTimeout(pauseMs)),
      () => undefined,
    );
    return turn;
  }
}
