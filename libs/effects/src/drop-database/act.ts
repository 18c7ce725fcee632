/**
 * DROP DATABASE, by recorded OID, for good: an absent one is what was wanted, a half-dropped one is finished.
 */
import { attemptDatabaseName, quoteIdentifier, tombstoneDatabaseName } from '#kernel';
import { guardedStatement, Refusal } from '#fencing';
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
    await client.query(`drop database ${quoteIdentifier(found.name)} with (force)`);
    if ((await findDatabase(client, spec.databaseOid)) !== undefined)
      throw new Refusal('still_there', `database ${found.name} is still listed after it was dropped`);
    return {};
  });

/** Under a name that only we give, or marked as this environment's. */
function isOurs(context: ActContext, environmentId: string, { name, mark }: FoundDatabase): boolean {
  if (mark !== undefined) return mark.installation === context.installation && mark.id === environmentId;
  return name.startsWith(tombstoneDatabaseName('')) || name.startsWith(attemptDatabaseName(''));
}
