/**
 * A rename needs a database without sessions. PostgreSQL helps: the rename takes its lock first, which keeps new sessions
 * out, and then waits up to five seconds for the ones that are there (CountOtherDBBackends in its source). So sessions are
 * ended by another connection *while* it waits; a pool that reconnects all the time cannot get in between.
 */
import { setTimeout } from 'node:timers/promises';
import { CONTROL_DATABASE } from '#fencing';
import { abandon } from '#postgres';
import type { ActContext } from '../contract.ts';

const SWEEP_INTERVAL_MS = 50;

interface Whose {
  readonly databaseOid: number;
  /** Sessions of these roles end too, wherever they are. */
  readonly roleOids?: readonly number[];
}

/** Runs `work` while every session on the database, and of the roles, is being ended. */
export async function endingSessions<T>(context: ActContext, whose: Whose, work: () => Promise<T>): Promise<T> {
  const sweeper = await context.connections.take(context.engine, CONTROL_DATABASE);
  const sweep = async (): Promise<number> =>
    (
      await sweeper.query(
        /* sql */ `select pg_terminate_backend(pid) from pg_stat_activity
                    where pid <> pg_backend_pid() and (datid = $1 or usesysid = any ($2::oid[]))`,
        [whose.databaseOid, whose.roleOids ?? []],
      )
    ).rowCount ?? 0;
  let working = true;
  try {
    await sweep();
    const sweeping = (async () => {
      while (working) {
        await setTimeout(SWEEP_INTERVAL_MS);
        // `working` changes while the timer runs.
        if (working as boolean) await sweep();
      }
    })();
    try {
      return await work();
    } finally {
      working = false;
      // A sweep that fails only means that the rename finds sessions and says so.
      await sweeping.catch(() => undefined);
    }
  } finally {
    abandon(sweeper);
  }
}
