/**
 * The group role of a network profile. The rule file opens the profile's addresses to its members, so one that is there
 * already counts only when it can do nothing by itself, as ours cannot.
 */
import { profileRole, quoteIdentifier } from '#kernel';
import { guardedBatch, Refusal } from '#fencing';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';

/** Owned objects and grants are shared dependencies; the membership of others in it is none. */
const FOUND = /* sql */ `
  select r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolcanlogin or r.rolreplication or r.rolbypassrls
         or exists (select from pg_auth_members m where m.member = r.oid)
         or exists (select from pg_shdepend d where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid
                                                and d.deptype in ('o', 'a', 'r')) as rights
    from pg_roles r where r.rolname = $1`;

export const act: Act<'profile-role'> = (context, { engineId, profile }) =>
  guardedBatch(guardOf(context, engineId), 'profile-role', async (client) => {
    const role = profileRole(profile);
    const { rows } = await client.query<{ rights: boolean }>(FOUND, [role]);
    const [found] = rows;
    if (found?.rights === true)
      throw new Refusal('foreign_object', `role ${role} exists, and has rights that a profile's role has not`);
    if (found === undefined) await client.query(`create role ${quoteIdentifier(role)} nologin`);
    return { profile, ...(found === undefined ? {} : { alreadyThere: true }) };
  });
