/**
 * The gateway's tie to its catalog. A gateway that starts while the catalog is down keeps trying, and answers meanwhile;
 * one whose catalog belongs to another version does not serve at all.
 */
import { setTimeout } from 'node:timers/promises';
import { assertCatalogVersion, CatalogSource, CatalogUnavailable, CatalogVersionMismatch } from '#catalog';
import type { Logger } from '#kernel';

/** Milliseconds. A request is answered within five seconds, whatever the catalog does. */
const PATIENCE = { connectMs: 1_500, statementMs: 2_500 };
const FATE_DEADLINE_MS = 1_000;
const RETRY_MS = 500;
const MAX_CONNECTIONS = 10;

export function catalogSource(url: string): CatalogSource {
  return new CatalogSource(
    { url, applicationName: 'surefoot gateway', maxConnections: MAX_CONNECTIONS, patience: PATIENCE },
    FATE_DEADLINE_MS,
  );
}

export class CatalogLink {
  readonly #source: CatalogSource;
  readonly #logger: Logger;
  #closed = false;
  #checked = false;

  constructor(source: CatalogSource, logger: Logger) {
    this.#source = source;
    this.#logger = logger;
  }

  /** Ends once the catalog was reached and has this program's schema. @throws CatalogVersionMismatch `catalog_newer` */
  async establish(): Promise<void> {
    let told = '';
    while (!this.#closed) {
      try {
        await this.#source.connect();
        await assertCatalogVersion(this.#source.catalog);
        this.#checked = true;
        this.#logger.info('catalog reached');
        return;
      } catch (error) {
        // An older schema is about to be migrated, or the set-up failed: either way it is not for us to end.
        const mayPass =
          error instanceof CatalogUnavailable ||
          (error instanceof CatalogVersionMismatch && error.code === 'catalog_outdated');
        if (!mayPass) throw error;
        if (told !== error.message) this.#logger.warn('catalog not ready', { error });
        told = error.message;
      }
      await setTimeout(RETRY_MS);
    }
  }

  /** @throws CatalogUnavailable */
  async assertReady(): Promise<void> {
    if (!this.#checked) throw new CatalogUnavailable('the catalog has not been reached yet');
    await this.#source.catalog.query('select 1');
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#source.close();
  }
}
