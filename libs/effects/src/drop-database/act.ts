/**
 * DROP DATABASE, by recorded OID, for good: an absent one is what was wanted, a half-dropped one is finished.
 */
import { attemptDatabaseName, quoteIdentifier, tombstoneDatabaseName } from '#kernel';
import { CONTROL_DATABASE, guardedStatement, Refusal } from '#fencing';
import { abandon, classifyEngineError, errorSentence } from '#postgres';
import { clearingTheWay } from '../clearing-the-way.ts';
import type { Act, ActContext } from '../contract.ts';
import type { FoundDatabase } from '../database/observe.ts';
import { findDatabase } from '../database/observe.ts';
import { guardOf } from '../guard.ts';

export const act: Act<'drop-database'> = (context, spec) =>
  guardedStatement(guardOf(context, spec.environmentId), async (client) => {
    const found = await findDatabase(client, spec.databaseOid);
    if (found === undefined) return { alreadyAbsent: true };
    if (!isOurs(context, spec.environmentId, found))
      throw new Refusal(
        'foreign_object',
        `the database with OID ${found.oid} is now called ${found.name} and carries no mark of this environment`,
      );
    try {
      await clearingTheWay(context, client, spec, () =>
        client.query(`drop database ${quoteIdentifier(found.name)} with (force)`),
      );
    } catch (error) {
      throw (await halfDropped(context, spec.databaseOid, error)) ?? error;
    }
    if ((await findDatabase(client, spec.databaseOid)) !== undefined)
      throw new Refusal('still_there', `database ${found.name} is still listed after it was dropped`);
    return {};
  });

/**
 * An error that the server answers to DROP DATABASE is not always "no effect": it may come after the point from which the
 * database can only be dropped. A fresh connection looks, as after any error.
 */
async function halfDropped(context: ActContext, databaseOid: number, error: unknown): Promise<Refusal | undefined> {
  if (classifyEngineError(error) !== 'answered') return undefined;
  const client = await context.connections.take(context.engine, CONTROL_DATABASE);
  try {
    const found = await findDatabase(client, databaseOid);
    if (found?.halfDropped !== true) return undefined;
    return new Refusal(
      'half_dropped',
      `${found.name} is half dropped, and can only be dropped: ${errorSentence(error)}`,
    );
  } finally {
    abandon(client);
  }
}

/** Under a name that only we give, or marked as this environment's. */
function isOurs(context: ActContext, environmentId: string, { name, mark }: FoundDatabase): boolean {
  if (mark !== undefined) return mark.installation === context.installation && mark.id === environmentId;
  return name.startsWith(tombstoneDatabaseName('')) || name.startsWith(attemptDatabaseName(''));
}
