/**
 * What is inside a new database, in one transaction: the public schema belongs to the owner role and is closed to others,
 * the tiers get their rights on everything that owner and migrate will make, the extensions are there.
 */
import { quoteIdentifier } from '#kernel';
import { guardedBatchIn } from '#fencing';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';

export const act: Act<'interior'> = (context, spec) =>
  guardedBatchIn(guardOf(context, spec.environmentId), spec.databaseOid, 'interior', async (client) => {
    await client.query(statements(spec));
    return {};
  });

function statements({ names, extensions }: Parameters<typeof act>[1]): string {
  const owner = quoteIdentifier(names.owner);
  const migrate = quoteIdentifier(names.logins.migrate);
  const app = quoteIdentifier(names.logins.app);
  const readonly = quoteIdentifier(names.logins.readonly);
  // Objects get their default privileges by who makes them: the owner role after SET ROLE, or the migrate login itself.
  const defaults = [owner, migrate].flatMap((maker) => [
    `alter default privileges for role ${maker} grant usage on schemas to ${app}, ${readonly};`,
    `alter default privileges for role ${maker} grant select, insert, update, delete on tables to ${app};`,
    `alter default privileges for role ${maker} grant usage, select, update on sequences to ${app};`,
    `alter default privileges for role ${maker} grant select on tables to ${readonly};`,
    `alter default privileges for role ${maker} grant select on sequences to ${readonly};`,
  ]);
  return [
    `revoke all on schema public from public;`,
    ...extensions.map(
      (extension) => `create extension if not exists ${quoteIdentifier(extension)} schema public cascade;`,
    ),
    `alter schema public owner to ${owner};`,
    `grant usage on schema public to ${app}, ${readonly};`,
    ...defaults,
  ].join('\n');
}
