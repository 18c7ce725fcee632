/**
 * Roles that own objects, or were granted rights, in other databases cannot be dropped (FIELD-CASES B141). In each of those
 * databases what they own goes to the administrator, so nothing of a neighbour is lost, and their rights are revoked.
 * Repeating it is harmless: the second time it finds nothing.
 */
import { quoteIdentifier } from '#kernel';
import { guardedStatement, Refusal } from '#fencing';
import { abandon } from '#postgres';
import type { Act, ActContext } from '../contract.ts';
import { findDatabase } from '../database/observe.ts';
import { guardOf } from '../guard.ts';
import { findRolesByOid } from '../roles/observe.ts';

export const act: Act<'disown'> = (context, spec) =>
  guardedStatement(guardOf(context, spec.environmentId), async (client) => {
    const roles = await findRolesByOid(client, Object.values(spec.roleOids));
    const foreign = roles.find(
      (role) => role.mark?.installation !== context.installation || role.mark.id !== spec.environmentId,
    );
    if (foreign !== undefined)
      throw new Refusal('foreign_object', `role ${foreign.name} (OID ${foreign.oid}) is not this environment's`);
    const disowned: string[] = [];
    for (const databaseOid of spec.databaseOids) {
      const found = await findDatabase(client, databaseOid);
      if (found === undefined) continue;
      if (!found.allowsConnections || found.halfDropped)
        throw new Refusal(
          'database_closed',
          `roles of the environment own objects in ${found.name}, which allows no connection`,
        );
      await disownIn(context, found.name, roles.map((role) => quoteIdentifier(role.name)).join(', '));
      disowned.push(found.name);
    }
    return { disowned };
  });

async function disownIn(context: ActContext, database: string, roles: string): Promise<void> {
  if (roles === '') return;
  const client = await context.connections.take(context.engine, database);
  try {
    // One string is one transaction.
    await client.query(`reassign owned by ${roles} to postgres; drop owned by ${roles};`);
  } finally {
    abandon(client);
  }
}
