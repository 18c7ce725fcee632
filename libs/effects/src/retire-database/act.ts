/**
 * Withdraws an environment's access and takes its name away, in one transaction of the control database: logins closed,
 * profile and rights revoked, the database renamed to a tombstone name that is never used again. Every session on it, and
 * of its logins anywhere, is ended; a pool that reconnects finds the logins closed once this has committed.
 */
import { profileRole, quoteIdentifier, tombstoneDatabaseName } from '#kernel';
import { guardedBatch, Refusal } from '#fencing';
import type { Client } from '#postgres';
import type { Act, ActContext } from '../contract.ts';
import type { FoundDatabase } from '../database/observe.ts';
import { findDatabase } from '../database/observe.ts';
import { guardOf } from '../guard.ts';
import type { FoundRole } from '../roles/observe.ts';
import { findRoles } from '../roles/observe.ts';
import { clearingTheWay } from '../clearing-the-way.ts';

export const act: Act<'retire-database'> = (context, spec) =>
  guardedBatch(guardOf(context, spec.environmentId), 'retire-database', async (client) => {
    const found = await findDatabase(client, spec.databaseOid);
    const roles = (await findRoles(client, spec.names)).filter((role) =>
      isOurs(context, spec.environmentId, role.mark),
    );
    if (found !== undefined && found.mark !== undefined && !isOurs(context, spec.environmentId, found.mark))
      throw new Refusal(
        'foreign_object',
        `database ${found.name} (OID ${found.oid}) carries another mark than this environment's`,
      );
    const profiles = await presentProfiles(client, spec);
    const statements = [...closing(spec, roles, profiles), ...renaming(context, roles, found)].join('\n');
    const whose = { databaseOid: spec.databaseOid, roleOids: roles.map((role) => role.oid) };
    await clearingTheWay(context, client, whose, () => client.query(statements));
    // Dropped by hand, or half dropped: what is left to do here was done, and what was found is told as drift.
    return {
      ...(found === undefined ? { alreadyAbsent: true } : {}),
      ...(found?.halfDropped === true ? { halfDropped: true } : {}),
    };
  });

function isOurs(context: ActContext, environmentId: string, mark: FoundRole['mark']): boolean {
  return mark?.installation === context.installation && mark.kind === 'environment' && mark.id === environmentId;
}

/** Group roles of its profiles: an engine that was made without one never let the environment in by it. */
async function presentProfiles(client: Client, { profiles }: Parameters<typeof act>[1]): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select rolname::text as name from pg_roles where rolname = any ($1::name[])',
    [profiles.map(profileRole)],
  );
  return rows.map(({ name }) => name);
}

function closing(
  { names }: Parameters<typeof act>[1],
  roles: readonly FoundRole[],
  profiles: readonly string[],
): readonly string[] {
  const present = new Set(roles.map((role) => role.name));
  return [
    ...Object.values(names.logins)
      .filter((login) => present.has(login))
      .map((login) => `alter role ${quoteIdentifier(login)} nologin;`),
    ...(present.has(names.door)
      ? profiles.map((profile) => `revoke ${quoteIdentifier(profile)} from ${quoteIdentifier(names.door)};`)
      : []),
  ];
}

function renaming(
  context: ActContext,
  roles: readonly FoundRole[],
  found: FoundDatabase | undefined,
): readonly string[] {
  // PostgreSQL allows nothing but a drop on a half-dropped database, and nobody can connect to it.
  if (found === undefined || found.halfDropped) return [];
  const tombstone = quoteIdentifier(tombstoneDatabaseName(context.inHand.token));
  const everyone = ['public', ...roles.map((role) => quoteIdentifier(role.name))].join(', ');
  return [
    `alter database ${quoteIdentifier(found.name)} connection limit 0;`,
    `revoke all on database ${quoteIdentifier(found.name)} from ${everyone};`,
    `alter database ${quoteIdentifier(found.name)} rename to ${tombstone};`,
  ];
}
