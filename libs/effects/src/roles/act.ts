/**
 * Owner, door and the three logins of an environment, in one transaction. The server gets SCRAM verifiers only, so a clear
 * password cannot be in its log whatever its settings.
 */
import type { JsonObject } from '#kernel';
import { markText, quoteIdentifier, quoteLiteral } from '#kernel';
import type { Client } from '#postgres';
import { guardedBatch, Refusal } from '#fencing';
import type { Act, ActContext } from '../contract.ts';
import { guardOf } from '../guard.ts';
import { findRoles } from './observe.ts';

const WITHOUT_RIGHTS = 'nosuperuser nocreatedb nocreaterole noreplication nobypassrls inherit';

export const act: Act<'roles'> = (context, spec) =>
  guardedBatch(guardOf(context, spec.environmentId), 'roles', async (client) => {
    // A role of that name that is there already answers 42710, and nothing of the batch is in force.
    await client.query(statements(context, spec));
    return { roleOids: await readOids(client, spec) };
  });

function statements(context: ActContext, { environmentId, names, connectionLimit }: Parameters<typeof act>[1]): string {
  const { verifiers } = context.secrets;
  if (verifiers === undefined) throw new TypeError('the roles effect needs the verifiers of its logins');
  const owner = quoteIdentifier(names.owner);
  const door = quoteIdentifier(names.door);
  const { migrate, app, readonly } = names.logins;
  const login = (name: string, verifier: string, memberOf: string): string =>
    `create role ${quoteIdentifier(name)} login ${WITHOUT_RIGHTS} connection limit ${connectionLimit} ` +
    `password ${quoteLiteral(verifier)} in role ${memberOf};`;
  const mark = quoteLiteral(
    markText({
      installation: context.installation,
      kind: 'environment',
      id: environmentId,
      token: context.inHand.token,
    }),
  );
  return [
    `create role ${owner} nologin ${WITHOUT_RIGHTS};`,
    `create role ${door} nologin ${WITHOUT_RIGHTS};`,
    login(migrate, verifiers.migrate, `${owner}, ${door}`),
    login(app, verifiers.app, door),
    login(readonly, verifiers.readonly, door),
    // What a migration makes belongs to the owner role, which outlives a rotated login.
    `alter role ${quoteIdentifier(migrate)} set role to ${quoteLiteral(names.owner)};`,
    `alter role ${quoteIdentifier(readonly)} set default_transaction_read_only to on;`,
    ...[names.owner, names.door, migrate, app, readonly].map(
      (name) => `comment on role ${quoteIdentifier(name)} is ${mark};`,
    ),
  ].join('\n');
}

async function readOids(client: Client, { names }: Parameters<typeof act>[1]): Promise<JsonObject> {
  const byName = new Map((await findRoles(client, names)).map((role) => [role.name, role.oid]));
  const oid = (name: string): number => {
    const found = byName.get(name);
    if (found === undefined) throw new Refusal('refused_by_engine', `role ${name} is not there after it was created`);
    return found;
  };
  return {
    owner: oid(names.owner),
    door: oid(names.door),
    migrate: oid(names.logins.migrate),
    app: oid(names.logins.app),
    readonly: oid(names.logins.readonly),
  };
}
