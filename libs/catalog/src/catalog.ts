/**
 * The catalog's connections and its one kind of transaction.
 *
 * A lost reply to COMMIT is neither success nor failure. Each transaction learns its own id in its first round trip, and
 * after a lost reply `pg_xact_status` (PostgreSQL manual, 9.26 "Transaction ID and Snapshot Information") says what became
 * of it, once it is no longer in progress. Nothing else is decided, and nothing repeated, before that answer.
 */
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { CatalogFateUnknown, CatalogUnavailable, isServerAnswer, isUnavailable } from './errors.ts';

export interface Tx {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

/** No statement of ours on the catalog is long. */
const STATEMENT_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long the fate of a lost COMMIT is asked for before the caller is told that it cannot be known now. */
const FATE_DEADLINE_MS = 60_000;
const FATE_INTERVAL_MS = 200;

export interface CatalogOptions {
  /** `postgres://…`; from local.env. */
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  readonly maxConnections: number;
  readonly patience?: CatalogPatience;
}

/** How long a program waits for the catalog, milliseconds; 0 is for ever. Shorter where somebody waits for an answer. */
export interface CatalogPatience {
  readonly connectMs: number;
  /** Given to the server; the client waits a little longer, so that a server that answers says "timeout" itself. */
  readonly statementMs: number;
}

const PATIENCE: CatalogPatience = { connectMs: CONNECT_TIMEOUT_MS, statementMs: STATEMENT_TIMEOUT_MS };

/** The settings of every connection to the catalog, TypeORM's included. */
export function connectionSettings(options: CatalogOptions): pg.PoolConfig {
  const { connectMs, statementMs } = options.patience ?? PATIENCE;
  return {
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    query_timeout: statementMs * 1.2,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    // Statements that do not wait for each other's answers travel together; their order stays.
    pipeline: true,
  };
}

export class Catalog {
  readonly #pool: pg.Pool;
  readonly #fateDeadlineMs: number;

  /** @param pool a pool with `connectionSettings`; the catalog closes it. */
  constructor(pool: pg.Pool, fateDeadlineMs: number = FATE_DEADLINE_MS) {
    this.#pool = pool;
    this.#fateDeadlineMs = fateDeadlineMs;
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    pool.on('error', () => undefined);
  }

  static open(options: CatalogOptions): Catalog {
    return new Catalog(new pg.Pool(connectionSettings(options)));
  }

  /** One statement of its own. @throws CatalogUnavailable when the statement read nothing and may be repeated. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>(named(text, values))).rows;
    } catch (error) {
      throw isUnavailable(error) ? new CatalogUnavailable('the catalog did not answer', { cause: error }) : error;
    }
  }

  /** A statement that is asked for often: parsed and planned once per connection, under its name. */
  async prepared<Row extends object>(name: string, text: string, values: readonly unknown[]): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>({ name, text, values: [...values] })).rows;
    } catch (error) {
      throw isUnavailable(error) ? new CatalogUnavailable('the catalog did not answer', { cause: error }) : error;
    }
  }

  /**
   * Runs `work` in one read-committed transaction. When this returns, it is committed; when it throws, it is not.
   * @throws CatalogUnavailable when the whole may be repeated; whatever `work` throws otherwise.
   */
  async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    // Without a listener a connection that breaks between two statements would end the process.
    const ignore = (): void => undefined;
    client.on('error', ignore);
    const leave = (broken: boolean): void => {
      if (!broken) client.off('error', ignore);
      client.release(broken);
    };

    let xid: string;
    let result: T;
    try {
      // What `work` asks travels behind it. Should it fail, so does everything after it.
      const begun = begin(client);
      begun.catch(() => undefined);
      result = await work({
        query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
          (await client.query<Row>(named(text, values))).rows,
      });
      xid = await begun;
    } catch (error) {
      leave(!(await rollback(client, error)));
      throw isUnavailable(error)
        ? new CatalogUnavailable('the catalog went away in a transaction', { cause: error })
        : error;
    }

    let ended: pg.QueryResult;
    try {
      ended = await client.query('commit');
    } catch (error) {
      if (isServerAnswer(error)) {
        leave(!(await rollback(client, error)));
        throw isUnavailable(error)
          ? new CatalogUnavailable('the catalog could not commit, and said so', { cause: error })
          : error;
      }
      leave(true);
      if (await this.#committed(xid, error)) return result;
      throw new CatalogUnavailable('the catalog went away before COMMIT took effect', { cause: error });
    }
    leave(false);
    // PostgreSQL answers COMMIT without an error, and with ROLLBACK, when a statement had failed and `work` went on.
    if (ended.command !== 'COMMIT') throw new TypeError('a statement had failed, so the transaction was rolled back');
    return result;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** What became of a transaction whose COMMIT got no reply. */
  async #committed(xid: string, cause: unknown): Promise<boolean> {
    const giveUpAt = Date.now() + this.#fateDeadlineMs;
    for (;;) {
      try {
        const [row] = await this.query<{ status: string | null }>('select pg_xact_status($1::xid8) as status', [xid]);
        if (row?.status === 'committed') return true;
        if (row?.status === 'aborted') return false;
        // `in progress`: the old backend still works on it. null: too old to be known, which a minute does not make it.
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      }
      if (Date.now() > giveUpAt) throw new CatalogFateUnknown(xid, { cause });
      await setTimeout(FATE_INTERVAL_MS);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw isUnavailable(error) ? new CatalogUnavailable('the catalog cannot be reached', { cause: error }) : error;
    }
  }
}

const names = new Map<string, string>();

/** Parsed and planned once per connection: our statements are constants, and the larger ones take longer to plan than to run. */
function named(text: string, values: readonly unknown[]): pg.QueryConfig {
  if (values.length === 0) return { text };
  const name = names.get(text) ?? `surefoot ${names.size}`;
  names.set(text, name);
  return { name, text, values: [...values] };
}

async function begin(client: pg.PoolClient): Promise<string> {
  // Two statements in one round trip: pg answers with a result for each.
  const results = (await client.query('begin; select pg_current_xact_id()::text as xid')) as unknown as readonly {
    rows: { xid: string }[];
  }[];
  const xid = results[1]?.rows[0]?.xid;
  if (xid === undefined) throw new TypeError('PostgreSQL did not tell the transaction id');
  return xid;
}

/** @returns whether the connection can be used again. */
async function rollback(client: pg.PoolClient, error: unknown): Promise<boolean> {
  if (isUnavailable(error)) return false;
  try {
    await client.query('rollback');
    return true;
  } catch {
    return false;
  }
}
