/**
 * Runs one pass again and again, never twice at a time.
 *
 * A hint that comes during a run makes another run follow at once: what it was about may have been missed. After a failure
 * hints do not shorten the wait. A state that lasts is logged once, when it begins and when it ends.
 */
import { setTimeout } from 'node:timers/promises';
import { BackOff } from '#broker';
import type { Logger } from '#kernel';
import type { Pass } from './pass.ts';

export interface PassEnd {
  readonly pass: string;
  readonly endedAt: Date;
  readonly outcome: 'done' | 'failed';
}

export class PassLoop {
  readonly #pass: Pass;
  readonly #logger: Logger;
  readonly #onEnd: (end: PassEnd) => void;
  readonly #stopping = new AbortController();
  readonly #backOff = new BackOff();
  #failing = false;
  #hinted = false;
  #wake: () => void = () => undefined;
  #running: Promise<void> | undefined;

  /** @param onEnd told of every run that ended; only such an end is a sign of life */
  constructor(pass: Pass, logger: Logger, onEnd: (end: PassEnd) => void) {
    this.#pass = pass;
    this.#logger = logger;
    this.#onEnd = onEnd;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Something may have changed. */
  hint(): void {
    this.#hinted = true;
    this.#wake();
  }

  /** Lets the run in hand end, and begins no other. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#hinted = false;
      const outcome = await this.#once();
      this.#onEnd({ pass: this.#pass.name, endedAt: new Date(), outcome });
      if (outcome === 'failed') await this.#backOff.wait(this.#stopping.signal);
      else await this.#interval();
    }
  }

  async #once(): Promise<PassEnd['outcome']> {
    const { name } = this.#pass;
    try {
      await this.#pass.run();
      this.#backOff.reset();
      if (this.#failing) this.#logger.info('pass works again', { pass: name });
      this.#failing = false;
      return 'done';
    } catch (error) {
      if (!this.#failing) this.#logger.warn('pass fails, it is tried again', { pass: name, error });
      this.#failing = true;
      return 'failed';
    }
  }

  async #interval(): Promise<void> {
    if (this.#hinted || this.#stopping.signal.aborted) return;
    const timer = new AbortController();
    this.#wake = () => timer.abort();
    await setTimeout(this.#pass.intervalMs, undefined, { signal: timer.signal }).catch(() => undefined);
    this.#wake = () => undefined;
  }
}
