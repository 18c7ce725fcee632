import { CONTROL_DATABASE } from '#fencing';
import { abandon } from '#postgres';
import type { ActContext } from '../contract.ts';
import { findDatabase } from './observe.ts';

/** The name that a database with a recorded OID has now; undefined when there is none. Read on a connection of its own. */
export async function readDatabaseName(context: ActContext, databaseOid: number): Promise<string | undefined> {
  const client = await context.connections.take(context.engine, CONTROL_DATABASE);
  try {
    return (await findDatabase(client, databaseOid))?.name;
  } finally {
    abandon(client);
  }
}
