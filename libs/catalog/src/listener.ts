/**
 * Notices of the catalog (LISTEN). They are hints and nothing more: one may be lost with the connection, so whoever listens
 * also looks from time to time, on the same path.
 */
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { type CatalogOptions, connectionSettings } from './catalog.ts';

/** Sent by a trigger with each commit that adds to the outbox. */
export const OUTBOX_CHANNEL = 'surefoot_outbox';

const RECONNECT_MS = 1_000;

export class CatalogListener {
  readonly #options: CatalogOptions;
  readonly #channel: string;
  readonly #onNotice: () => void;
  readonly #closing = new AbortController();
  #client: pg.Client | undefined;
  #running: Promise<void> | undefined;

  /** @param onNotice also called whenever the connection is made (again), for what was missed before */
  constructor(options: CatalogOptions, channel: string, onNotice: () => void) {
    this.#options = options;
    this.#channel = channel;
    this.#onNotice = onNotice;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#client?.connection.stream.destroy();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      // Whatever ends it, the answer is the same: the timer looks meanwhile, and this tries again.
      await this.#listen().catch(() => undefined);
      await setTimeout(RECONNECT_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /** Returns when the connection has ended. */
  async #listen(): Promise<void> {
    const client = new pg.Client(connectionSettings(this.#options));
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    client.on('error', () => undefined);
    client.on('notification', () => this.#onNotice());
    this.#client = client;
    try {
      await client.connect();
      await client.query(`listen ${this.#channel}`);
      this.#onNotice();
      await ended;
    } finally {
      this.#client = undefined;
      await client.end().catch(() => undefined);
    }
  }
}
