/**
 * Connections to an engine as its administrator, through its Unix socket: they work while the daemon is dead, and no rule
 * of the rule file but the administrator's own line concerns them.
 */
import { readFile } from 'node:fs/promises';
import pg from 'pg';

/** What is needed to reach an engine; libs/effects' EnginePlace has it. */
export interface AdminPlace {
  readonly socketFolder: string;
  readonly adminPasswordFile: string;
}

/**
 * Given with the connection's start, these win over what a database's or role's owner could have set (ALTER DATABASE …
 * SET, ALTER ROLE … SET): a tenant's settings never reach a statement of ours.
 */
const SESSION_SETTINGS = [
  'search_path=pg_catalog',
  'default_transaction_isolation=read\\ committed',
  'default_transaction_read_only=off',
  'default_transaction_deferrable=off',
  'synchronous_commit=on',
  'client_connection_check_interval=5000',
  'session_replication_role=origin',
  'role=none',
  'standard_conforming_strings=on',
  'backslash_quote=safe_encoding',
  'client_min_messages=warning',
];

const CONNECT_TIMEOUT_MS = 10_000;

export interface AdminOptions {
  /** Milliseconds: the server ends a statement then; the client gives up two seconds later. */
  readonly statementTimeoutMs: number;
  readonly applicationName?: string;
}

/** One fresh connection. The caller ends it; after any error it is not used again. */
export async function connectAdmin(place: AdminPlace, database: string, options: AdminOptions): Promise<pg.Client> {
  const password = (await readFile(place.adminPasswordFile, 'utf8')).trim();
  const { statementTimeoutMs } = options;
  const client = new pg.Client({
    host: place.socketFolder,
    port: 5432,
    user: 'postgres',
    password,
    database,
    application_name: options.applicationName ?? 'surefoot',
    options: SESSION_SETTINGS.map((setting) => `-c ${setting}`).join(' '),
    statement_timeout: statementTimeoutMs,
    lock_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 2_000,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // Without a listener a connection that breaks between two statements would end the process.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/**
 * Fresh connections, made ahead: opening one costs more than most batches. Each is handed out once, unused, and
 * never comes back, so a guarded batch has a backend of its own whatever happened before.
 */
export class FreshConnections {
  readonly #ahead = new Map<string, Promise<pg.Client | undefined>>();
  /** Where one is always wanted: the next is begun as soon as one is taken. */
  readonly #kept = new Set<string>();

  /** @param options apply to every connection; the statement timeout is the longest an effect may take */
  constructor(private readonly options: AdminOptions) {}

  /** From now on there is one ahead for this database. */
  keep(place: AdminPlace, database: string): void {
    this.#kept.add(keyOf(place, database));
    this.prepare(place, database);
  }

  /** Opens a connection now for the next `take` of the same database. Failing is fine: `take` tries again. */
  prepare(place: AdminPlace, database: string): void {
    const key = keyOf(place, database);
    if (this.#ahead.has(key)) return;
    const opening = connectAdmin(place, database, this.options).catch(() => undefined);
    this.#ahead.set(key, opening);
    // One that breaks while it waits is not handed out; one that was handed out is no longer ours to forget.
    const forget = (): void => {
      if (this.#ahead.get(key) === opening) this.#ahead.delete(key);
    };
    void opening.then((client) => (client === undefined ? forget() : client.once('end', forget)));
  }

  async take(place: AdminPlace, database: string): Promise<pg.Client> {
    const key = keyOf(place, database);
    const ahead = this.#ahead.get(key);
    this.#ahead.delete(key);
    if (this.#kept.has(key)) this.prepare(place, database);
    return (await ahead) ?? connectAdmin(place, database, this.options);
  }
}

function keyOf(place: AdminPlace, database: string): string {
  return `${place.socketFolder} ${database}`;
}

/** Ends a connection without waiting for it: what it was for is settled, or the connection is broken. */
export function abandon(client: pg.Client): void {
  client.end().catch(() => undefined);
}
