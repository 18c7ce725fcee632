/**
 * Drops an environment's roles by their recorded OIDs, in one transaction. Roles that are gone already are what was wanted.
 */
import { quoteIdentifier } from '#kernel';
import type { Client } from '#postgres';
import { errorCode } from '#postgres';
import { guardedBatch, Refusal } from '#fencing';
import { clearingTheWay } from '../clearing-the-way.ts';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';
import type { FoundRole } from '../roles/observe.ts';
import { findRolesByOid } from '../roles/observe.ts';

export const act: Act<'drop-roles'> = (context, spec) =>
  guardedBatch(guardOf(context, spec.environmentId), 'drop-roles', async (client) => {
    const wanted = Object.values(spec.roleOids);
    const roles = await findRolesByOid(client, wanted);
    const foreign = roles.find(
      (role) => role.mark?.installation !== context.installation || role.mark.id !== spec.environmentId,
    );
    if (foreign !== undefined)
      throw new Refusal('foreign_object', `role ${foreign.name} (OID ${foreign.oid}) is not this environment's`);
    const whose = { roleOids: roles.map((role) => role.oid) };
    if (roles.length > 0) await clearingTheWay(context, client, whose, () => drop(client, roles));
    return roles.length === wanted.length ? {} : { alreadyAbsent: wanted.length - roles.length };
  });

async function drop(client: Client, roles: readonly FoundRole[]): Promise<void> {
  await client.query('savepoint before_drop');
  try {
    await client.query(`drop role ${roles.map((role) => quoteIdentifier(role.name)).join(', ')}`);
  } catch (error) {
    if (errorCode(error) !== DEPENDENT_OBJECTS) throw error;
    await client.query('rollback to savepoint before_drop');
    const databaseOids = await dependentDatabases(client, roles);
    throw new Refusal(
      'dependent_objects',
      `the roles own objects or hold rights in ${databaseOids.length} other database(s)`,
      { databaseOids },
    );
  }
}

const DEPENDENT_OBJECTS = '2BP01';

/**
 * Where the roles are still referred to. References from shared objects, such as memberships that they granted to others,
 * can be revoked from any database: ours is named.
 */
async function dependentDatabases(client: Client, roles: readonly FoundRole[]): Promise<readonly number[]> {
  const { rows } = await client.query<{ oid: number }>(
    /* sql */ `select distinct case when s.dbid = 0 then (select oid from pg_database where datname = current_database()) else s.dbid end as oid
                 from pg_shdepend s
                where s.refclassid = 'pg_authid'::regclass and s.refobjid = any ($1::oid[])
                  and not (s.classid = 'pg_authid'::regclass and s.objid = any ($1::oid[]))
                order by 1`,
    [roles.map((role) => role.oid)],
  );
  return rows.map((row) => Number(row.oid));
}
