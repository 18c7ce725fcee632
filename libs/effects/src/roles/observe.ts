import type { EnvironmentNames, Mark } from '#kernel';
import { parseMark } from '#kernel';
import type { Client } from '#postgres';

export interface FoundRole {
  readonly oid: number;
  readonly name: string;
  /** Undefined: no mark of ours on it. */
  readonly mark: Mark | undefined;
}

const BY_NAME = /* sql */ `
  select oid, rolname as name, shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = any ($1::name[])`;
const BY_OID = /* sql */ `
  select oid, rolname as name, shobj_description(oid, 'pg_authid') as comment from pg_roles where oid = any ($1::oid[])`;

/** Roles that have an environment's names, whoever made them. */
export function findRoles(client: Client, names: EnvironmentNames): Promise<readonly FoundRole[]> {
  return read(client, BY_NAME, [names.owner, names.door, ...Object.values(names.logins)]);
}

/** Roles by their recorded identity. */
export function findRolesByOid(client: Client, oids: readonly number[]): Promise<readonly FoundRole[]> {
  return read(client, BY_OID, oids);
}

async function read(
  client: Client,
  statement: string,
  keys: readonly (string | number)[],
): Promise<readonly FoundRole[]> {
  const { rows } = await client.query<{ oid: number; name: string; comment: string | null }>(statement, [keys]);
  return rows.map(({ oid, name, comment }) => ({ oid: Number(oid), name, mark: parseMark(comment) }));
}
