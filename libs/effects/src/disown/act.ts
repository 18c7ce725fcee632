/**
 * Roles that own objects, or were granted rights, in other databases cannot be dropped (FIELD-CASES B141). In each of those
 * databases what they own goes to the estate, so nothing of a neighbour is lost, and their rights are revoked. Repeating it
 * is harmless: the second time it finds nothing.
 *
 * The estate is a role that can do nothing and that nobody is a member of. Functions, views and indexes run code with their
 * owner's rights, and this is code of a tenant: under the administrator or a neighbour it would get what they may do.
 */
import { quoteIdentifier } from '#kernel';
import { guardedStatement, Refusal, SHORT_LOCK_WAIT_MS } from '#fencing';
import type { Client } from '#postgres';
import { abandon } from '#postgres';
import type { Act, ActContext } from '../contract.ts';
import { findDatabase } from '../database/observe.ts';
import { guardOf } from '../guard.ts';
import { findRolesByOid } from '../roles/observe.ts';

const ESTATE = 'surefoot_estate';

export const act: Act<'disown'> = (context, spec) =>
  guardedStatement(guardOf(context, spec.environmentId), async (client) => {
    const roles = await findRolesByOid(client, Object.values(spec.roleOids));
    const foreign = roles.find(
      (role) => role.mark?.installation !== context.installation || role.mark.id !== spec.environmentId,
    );
    if (foreign !== undefined)
      throw new Refusal('foreign_object', `role ${foreign.name} (OID ${foreign.oid}) is not this environment's`);
    await ensureEstate(client);
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

/** Engines of an older version have none yet. One that somebody gave rights, or a member, is no estate. */
async function ensureEstate(client: Client): Promise<void> {
  const { rows } = await client.query<{ rightless: boolean }>(
    /* sql */ `select not (rolsuper or rolcanlogin or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)
                  and not exists (select from pg_auth_members m where r.oid in (m.roleid, m.member)) as rightless
                 from pg_roles r where rolname = $1`,
    [ESTATE],
  );
  const [estate] = rows;
  if (estate === undefined) await client.query(`create role ${ESTATE} nologin`);
  else if (!estate.rightless)
    throw new Refusal('estate_has_rights', `role ${ESTATE} may do more than nothing, or has members`);
}

async function disownIn(context: ActContext, database: string, roles: string): Promise<void> {
  if (roles === '') return;
  const client = await context.connections.take(context.engine, database);
  try {
    // One string is one transaction.
    await client.query(
      `set local lock_timeout to ${SHORT_LOCK_WAIT_MS};
       reassign owned by ${roles} to ${ESTATE};
       drop owned by ${roles};`,
    );
  } finally {
    abandon(client);
  }
}
