/**
 * A rename needs a database without sessions. PostgreSQL helps: the rename takes its lock first, which keeps new sessions
 * out, and then waits up to five seconds for the ones that are there (CountOtherDBBackends in its source). So sessions are
 * ended on our own connection before it, and by another connection *while* it waits; a pool that reconnects all the time
 * cannot get in between.
 */
import { setTimeout } from 'node:timers/promises';
import { CONTROL_DATABASE } from '#fencing';
import type { Client } from '#postgres';
import { abandon } from '#postgres';
import type { ActContext } from '../contract.ts';

const SWEEP_INTERVAL_MS = 50;

interface Whose {
  readonly databaseOid: number;
  /** Sessions of these roles end too, wherever they are. */
  readonly roleOids: readonly number[];
}

/** Runs `work` on `client` while every session on the database, and of the roles, is being ended. */
export async function endingSessions<T>(
  context: ActContext,
  client: Client,
  whose: Whose,
  work: () => Promise<T>,
): Promise<T> {
  await endSessions(client, whose);
  const done = new AbortController();
  const sweeping = sweep(context, whose, done.signal);
  try {
    return await work();
  } finally {
    done.abort();
    // A sweep that fails only means that the rename finds sessions and says so.
    await sweeping.catch(() => undefined);
  }
}

async function endSessions(client: Client, { databaseOid, roleOids }: Whose): Promise<void> {
  await client.query(
    /* sql */ `select pg_terminate_backend(pid) from pg_stat_activity
                where pid <> pg_backend_pid() and (datid = $1 or usesysid = any ($2::oid[]))`,
    [databaseOid, roleOids],
  );
}

/** Mostly the work is done before the first sweep, which then needs no connection. */
async function sweep(context: ActContext, whose: Whose, done: AbortSignal): Promise<void> {
  let sweeper: Client | undefined;
  try {
    for (;;) {
      await setTimeout(SWEEP_INTERVAL_MS, undefined, { signal: done });
      sweeper ??= await context.connections.take(context.engine, CONTROL_DATABASE);
      await endSessions(sweeper, whose);
    }
  } finally {
    if (sweeper !== undefined) abandon(sweeper);
  }
}
