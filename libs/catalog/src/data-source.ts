/**
 * TypeORM's connections to the catalog. Entities are for reading; every write is a named statement with the expected state
 * in it (statements/), on the same pool.
 */
import { DataSource, type EntityManager, type Logger, type MigrationInterface } from 'typeorm';
import type pg from 'pg';
import { Catalog, type CatalogOptions, connectionSettings } from './catalog.ts';
import { ENTITIES } from './entities/index.ts';
import { CatalogUnavailable, isUnavailable } from './errors.ts';
import { MIGRATIONS } from './migrations/index.ts';

export function catalogDataSource(
  options: CatalogOptions,
  migrations: readonly (new () => MigrationInterface)[] = MIGRATIONS,
): DataSource {
  return new DataSource({
    type: 'postgres',
    url: options.url,
    // pg's own names: TypeORM passes them on to the pool as they are.
    extra: connectionSettings(options),
    entities: [...ENTITIES],
    migrations: [...migrations],
    installExtensions: false,
    logger: SILENT,
    poolErrorHandler: () => undefined,
  });
}

const nothing = (): void => undefined;

/** A statement's parameters can hold sealed secrets, so TypeORM writes nothing; what fails is thrown, and told by us. */
const SILENT: Logger = {
  logQuery: nothing,
  logQueryError: nothing,
  logQuerySlow: nothing,
  logSchemaBuild: nothing,
  logMigration: nothing,
  log: nothing,
};

/** One pool under two doors: entities for lists, statements for the rest. Not connected until `connect` has returned. */
export class CatalogSource {
  readonly #source: DataSource;
  readonly #fateDeadlineMs: number;
  #catalog: Catalog | undefined;

  /** @param fateDeadlineMs how long the fate of a lost COMMIT is asked for; see CatalogFateUnknown */
  constructor(options: CatalogOptions, fateDeadlineMs: number) {
    this.#source = catalogDataSource(options);
    this.#fateDeadlineMs = fateDeadlineMs;
  }

  /** One try. @throws CatalogUnavailable */
  async connect(): Promise<void> {
    if (this.#catalog !== undefined) return;
    try {
      if (!this.#source.isInitialized) await this.#source.initialize();
    } catch (error) {
      throw translated(error, 'the catalog cannot be reached');
    }
    const { master } = this.#source.driver as unknown as { readonly master: pg.Pool };
    this.#catalog = new Catalog(master, this.#fateDeadlineMs);
  }

  /** @throws CatalogUnavailable before the first connection */
  get catalog(): Catalog {
    if (this.#catalog === undefined) throw new CatalogUnavailable('the catalog has not been reached yet');
    return this.#catalog;
  }

  /** @throws CatalogUnavailable */
  async read<T>(work: (entities: EntityManager) => Promise<T>): Promise<T> {
    if (this.#catalog === undefined) throw new CatalogUnavailable('the catalog has not been reached yet');
    try {
      return await work(this.#source.manager);
    } catch (error) {
      throw translated(error, 'the catalog did not answer');
    }
  }

  async close(): Promise<void> {
    this.#catalog = undefined;
    if (this.#source.isInitialized) await this.#source.destroy();
  }
}

function translated(error: unknown, message: string): unknown {
  return isUnavailable(error) ? new CatalogUnavailable(message, { cause: error }) : error;
}
