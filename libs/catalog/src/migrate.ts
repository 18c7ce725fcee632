/**
 * Migrations of the catalog (FIELD-CASES B151).
 *
 * One session takes an advisory lock and migrates on that same session: when it dies, its lock and its unfinished
 * transaction end together, so nobody else can be let in while its work goes on. Others wait, and find nothing to do.
 */
import { MigrationExecutor, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { Catalog } from './catalog.ts';
import { catalogDataSource } from './data-source.ts';
import { CatalogUnavailable, isUnavailable, sqlState } from './errors.ts';
import { MIGRATIONS } from './migrations/index.ts';

type Migrations = readonly (new () => MigrationInterface)[];

/** Program and catalog do not fit. The message says what to do. */
export class CatalogVersionMismatch extends Error {
  readonly code: 'catalog_newer' | 'catalog_outdated';

  constructor(code: CatalogVersionMismatch['code'], message: string) {
    super(message);
    this.name = 'CatalogVersionMismatch';
    this.code = code;
  }
}

/** In the namespace of one-argument advisory locks; the audit's is 7270616. */
const MIGRATION_LOCK = 7_270_617;
/** A waiter gives up after this long, since the other is then stuck rather than busy. */
const LOCK_WAIT = '10min';
const CONNECT_MS = 5_000;

/**
 * Brings the catalog to the newest schema this program knows. Twice is harmless.
 * @param url `postgres://…`
 * @param migrations told by tests
 * @returns the names of the migrations that were run now
 * @throws CatalogVersionMismatch when a newer program has been here; CatalogUnavailable
 */
export async function migrateCatalog(url: string, migrations: Migrations = MIGRATIONS): Promise<readonly string[]> {
  const source = catalogDataSource(
    {
      url,
      applicationName: 'surefoot migrate',
      maxConnections: 2,
      // A waiter waits, and a migration may be long.
      patience: { connectMs: CONNECT_MS, statementMs: 0 },
    },
    migrations,
  );
  try {
    await source.initialize();
    const runner = source.createQueryRunner();
    try {
      await lock(runner);
      const executor = new MigrationExecutor(source, runner);
      refuseNewer(
        (await executor.getExecutedMigrations()).map((migration) => migration.name),
        migrations,
      );
      executor.transaction = 'each';
      return (await executor.executePendingMigrations()).map((migration) => migration.name);
    } finally {
      await unlock(runner);
      await runner.release();
    }
  } catch (error) {
    throw isUnavailable(error) ? new CatalogUnavailable('the catalog could not be migrated', { cause: error }) : error;
  } finally {
    if (source.isInitialized) await source.destroy();
  }
}

async function lock(runner: QueryRunner): Promise<void> {
  // A holder that was killed, or whose cable was pulled, is noticed within seconds even in the middle of a statement.
  await runner.query(`set client_connection_check_interval = '1s'`);
  await runner.query(`set tcp_keepalives_idle = 5`);
  await runner.query(`set tcp_keepalives_interval = 2`);
  await runner.query(`set tcp_keepalives_count = 3`);
  await runner.query(`set lock_timeout = '${LOCK_WAIT}'`);
  await runner.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
}

async function unlock(runner: QueryRunner): Promise<void> {
  try {
    await runner.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK]);
  } catch {
    // The connection is gone, and the lock with it; what was thrown before says why.
  }
}

/**
 * For programs at their start: the catalog is exactly what this program was built for.
 * @throws CatalogVersionMismatch, CatalogUnavailable
 */
export async function assertCatalogVersion(catalog: Pick<Catalog, 'query'>): Promise<void> {
  const executed = await executedMigrations(catalog);
  refuseNewer(executed, MIGRATIONS);
  const missing = MIGRATIONS.map((migration) => migration.name).filter((name) => !executed.includes(name));
  if (missing.length > 0)
    throw new CatalogVersionMismatch(
      'catalog_outdated',
      `the catalog lacks ${missing.join(', ')}: run "npm start" of this version, which migrates it`,
    );
}

async function executedMigrations(catalog: Pick<Catalog, 'query'>): Promise<readonly string[]> {
  try {
    return (await catalog.query<{ name: string }>('select name from migrations')).map((row) => row.name);
  } catch (error) {
    if (sqlState(error) === UNDEFINED_TABLE) return [];
    throw error;
  }
}

const UNDEFINED_TABLE = '42P01';

function refuseNewer(executed: readonly string[], known: Migrations): void {
  const unknown = executed.filter((name) => !known.some((migration) => migration.name === name));
  if (unknown.length > 0)
    throw new CatalogVersionMismatch(
      'catalog_newer',
      `the catalog was migrated by a newer Surefoot (${unknown.join(', ')}): run that version, or restore a backup of the catalog made before`,
    );
}
