/**
 * Whether baseline and product still make the same thing. If one of them changes and the other does not, their ratio says
 * nothing, so the bench stops instead of giving it.
 */
import type { EnvironmentNames } from '#kernel';
import { connectAdmin } from '#postgres';
import type { EngineInUse } from './installation.ts';

const CLUSTER = /* sql */ `
  select json_build_object(
    'roles', (select json_agg(json_build_object(
        'name', r.rolname, 'attributes', array[r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, r.rolbypassrls],
        'limit', r.rolconnlimit, 'settings', s.setconfig, 'verifier', left(a.rolpassword, 14),
        'marked', shobj_description(r.oid, 'pg_authid') like 'surefoot %') order by r.rolname)
      from pg_roles r join pg_authid a on a.oid = r.oid left join pg_db_role_setting s on s.setrole = r.oid
     where r.rolname = any ($1::name[])),
    'memberships', (select json_agg(json_build_array(g.rolname, m.rolname, p.inherit_option, p.set_option, p.admin_option) order by g.rolname, m.rolname)
      from pg_auth_members p join pg_roles g on g.oid = p.roleid join pg_roles m on m.oid = p.member
     where m.rolname = any ($1::name[])),
    'database', (select json_build_array(pg_get_userbyid(d.datdba), d.datconnlimit, d.datacl::text, d.datallowconn, pg_encoding_to_char(d.encoding),
        d.datcollate, shobj_description(d.oid, 'pg_database') like 'surefoot %') from pg_database d where d.datname = current_database())) as found`;

const INSIDE = /* sql */ `
  select json_build_object(
    'schemas', (select json_agg(json_build_array(nspname, pg_get_userbyid(nspowner), nspacl::text) order by nspname)
      from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'),
    'defaults', (select json_agg(json_build_array(pg_get_userbyid(defaclrole), defaclobjtype, defaclacl::text) order by defaclrole, defaclobjtype)
      from pg_default_acl),
    'extensions', (select json_agg(extname order by extname) from pg_extension)) as found`;

/** @throws Error that shows both, when they differ */
export async function expectSameResult(
  engine: EngineInUse,
  ours: EnvironmentNames,
  plain: EnvironmentNames,
): Promise<void> {
  const [one, other] = [await describe(engine, ours), await describe(engine, plain)];
  if (one !== other)
    throw new Error(`the baseline does not make what Surefoot makes:\n  Surefoot ${one}\n  baseline ${other}`);
}

async function describe(engine: EngineInUse, names: EnvironmentNames): Promise<string> {
  const client = await connectAdmin(engine, names.database, { statementTimeoutMs: 10_000 });
  try {
    const roles = [names.owner, names.door, ...Object.values(names.logins)];
    const cluster = await client.query<{ found: unknown }>(CLUSTER, [roles]);
    const inside = await client.query<{ found: unknown }>(INSIDE);
    return JSON.stringify([cluster.rows[0]?.found, inside.rows[0]?.found]).replaceAll(names.database, 'NAME');
  } finally {
    await client.end();
  }
}
