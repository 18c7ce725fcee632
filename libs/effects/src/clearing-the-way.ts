/**
 * Who keeps a rename or a drop of a database, or a drop of roles, waiting, and how it is ended.
 *
 * Sessions on it: PostgreSQL helps. The statement takes its lock first, which keeps new sessions out, and then waits up to
 * five seconds for the ones that are there (CountOtherDBBackends in its source). So sessions are ended on our own connection
 * before it, and by another connection *while* it waits; a pool that reconnects all the time cannot get in between.
 *
 * Locks: any login can hold one on any database or role of the engine, with an open `ALTER ROLE itself IN DATABASE …` or
 * `GRANT … TO` somebody. A session of a login that keeps us waiting for more than a second is ended; the queue for a lock is fair, so it is our turn
 * then.
 */
import { setTimeout } from 'node:timers/promises';
import { CONTROL_DATABASE } from '#fencing';
import type { Client } from '#postgres';
import { abandon } from '#postgres';
import type { ActContext } from './contract.ts';

const SWEEP_INTERVAL_MS = 50;
/** A login's own short statements are not disturbed. */
const BLOCKERS_AFTER_MS = 1_000;

interface Whose {
  readonly databaseOid?: number;
  /** Sessions of these roles end too, wherever they are. */
  readonly roleOids?: readonly number[];
}

/** Runs `work` on `client` while everybody who is in its way is being ended. */
export async function clearingTheWay<T>(
  context: ActContext,
  client: Client,
  whose: Whose,
  work: () => Promise<T>,
): Promise<T> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await endSessions(client, whose);
  const done = new AbortController();
  const sweeping = sweep(context, whose, rows[0]?.pid ?? 0, done.signal);
  try {
    return await work();
  } finally {
    done.abort();
    // A sweep that fails only means that the statement finds somebody in its way, and says so.
    await sweeping.catch(() => undefined);
  }
}

async function endSessions(client: Client, { databaseOid, roleOids = [] }: Whose): Promise<void> {
  await client.query(
    /* sql */ `select pg_terminate_backend(pid) from pg_stat_activity
                where pid <> pg_backend_pid() and (datid = $1::oid or usesysid = any ($2::oid[]))`,
    [databaseOid ?? null, roleOids],
  );
}

async function endBlockers(client: Client, pid: number): Promise<void> {
  await client.query(
    /* sql */ `select pg_terminate_backend(a.pid)
                 from unnest(pg_blocking_pids($1)) b(pid)
                 join pg_stat_activity a on a.pid = b.pid
                 join pg_roles r on r.oid = a.usesysid and not r.rolsuper`,
    [pid],
  );
}

/** Mostly the work is done before the first sweep, which then needs no connection. */
async function sweep(context: ActContext, whose: Whose, pid: number, done: AbortSignal): Promise<void> {
  let sweeper: Client | undefined;
  const blockersFrom = performance.now() + BLOCKERS_AFTER_MS;
  try {
    for (;;) {
      await setTimeout(SWEEP_INTERVAL_MS, undefined, { signal: done });
      sweeper ??= await context.connections.take(context.engine, CONTROL_DATABASE);
      await endSessions(sweeper, whose);
      if (performance.now() > blockersFrom) await endBlockers(sweeper, pid);
    }
  } finally {
    if (sweeper !== undefined) abandon(sweeper);
  }
}
