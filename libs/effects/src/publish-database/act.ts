/**
 * From the private build to the environment's database, in one transaction of the control database: name, rights, limit,
 * mark. Until it commits nobody but the administrator can connect, and afterwards all of it is in force.
 */
import { attemptDatabaseName, markText, quoteIdentifier, quoteLiteral } from '#kernel';
import { guardedBatch, Refusal } from '#fencing';
import { clearingTheWay } from '../clearing-the-way.ts';
import { findDatabase } from '../database/observe.ts';
import type { Act, ActContext } from '../contract.ts';
import { guardOf } from '../guard.ts';

export const act: Act<'publish-database'> = (context, spec) =>
  guardedBatch(guardOf(context, spec.environmentId), 'publish-database', async (client) => {
    const found = await findDatabase(client, spec.databaseOid);
    // The attempt's name holds the token of the effect that made it; any other name is not the database we built.
    if (found === undefined || !found.name.startsWith(attemptDatabaseName('')))
      throw new Refusal(
        'database_gone',
        `the database that was built (OID ${spec.databaseOid}) is not there under its attempt's name`,
      );
    await clearingTheWay(context, client, { databaseOid: spec.databaseOid }, () =>
      client.query(statements(context, spec, found.name)),
    );
    return { database: spec.names.database };
  });

function statements(context: ActContext, spec: Parameters<typeof act>[1], present: string): string {
  const { names, environmentId, connectionLimit } = spec;
  const database = quoteIdentifier(names.database);
  const logins = Object.values(names.logins).map(quoteIdentifier).join(', ');
  const mark = markText({
    installation: context.installation,
    kind: 'environment',
    id: environmentId,
    token: context.inHand.token,
  });
  return [
    `alter database ${quoteIdentifier(present)} rename to ${database};`,
    `revoke all on database ${database} from public;`,
    `grant connect, temporary on database ${database} to ${logins};`,
    `grant create on database ${database} to ${quoteIdentifier(names.owner)};`,
    `alter database ${database} connection limit ${connectionLimit};`,
    `comment on database ${database} is ${quoteLiteral(mark)};`,
  ].join('\n');
}
