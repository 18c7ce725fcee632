/**
 * Names of environments and of what is made for them in PostgreSQL (DESIGN §9, "Names").
 *
 * Every statement quotes through `quoteIdentifier` and `quoteLiteral` of this file; a test greps for any other way.
 */
import { ENVIRONMENT_NAME_MAX_BYTES } from './limits.ts';

export const TIERS = ['migrate', 'app', 'readonly'] as const;
/** A login's rights: migrate owns the schema, app reads and writes, readonly reads. */
export type Tier = (typeof TIERS)[number];

/** All PostgreSQL names of one environment. The suffix is part of every one, so two environments never share a name. */
export interface EnvironmentNames {
  /** The database, and the door role that is named as its database. */
  readonly database: string;
  readonly door: string;
  readonly owner: string;
  readonly logins: Readonly<Record<Tier, string>>;
}

/** UTF-8 length without `Buffer` or `TextEncoder`, neither of which is part of the language itself. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/**
 * What is wrong with an environment name, as the sentence a caller reads; undefined when it is allowed.
 * Length counts in bytes of the longest derived name, since that is what PostgreSQL would cut (FIELD-CASES B009).
 */
export function environmentNameFault(name: string): string | undefined {
  if (name === '') return 'a name has at least one character';
  // Unpaired surrogates have no UTF-8 form; line and paragraph separators end a line in logs and files as control characters do.
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name))
    return 'control characters, line separators and unpaired surrogates are not allowed';
  if (name.includes('/')) return 'a slash is not allowed';
  if (name.startsWith('pg_')) return 'names that begin with "pg_" are reserved by PostgreSQL for its own roles';
  const bytes = utf8Bytes(name);
  if (bytes > ENVIRONMENT_NAME_MAX_BYTES)
    return `a name has at most ${ENVIRONMENT_NAME_MAX_BYTES} bytes in UTF-8; this one has ${bytes}`;
  return undefined;
}

/** @param environmentId a UUID; its first 8 hexadecimal digits become the suffix. */
export function environmentNames(name: string, environmentId: string): EnvironmentNames {
  const base = `${name}_${environmentId.slice(0, 8)}`;
  return {
    database: base,
    door: base,
    owner: `${base}_owner`,
    logins: { migrate: `${base}_migrate`, app: `${base}_app`, readonly: `${base}_readonly` },
  };
}

/** The name a database is built under: the token is in it, so it is never used twice, and no role has it, so no rule matches. */
export function attemptDatabaseName(token: string): string {
  return `surefoot_attempt_${token.replaceAll('-', '')}`;
}

/** The name a database has from the moment its removal began. */
export function tombstoneDatabaseName(token: string): string {
  return `surefoot_tombstone_${token.replaceAll('-', '')}`;
}

/** Group role of a network profile: the rule file names it, membership opens the profile's addresses to a door role. */
export function profileRole(profile: string): string {
  return `surefoot_profile_${profile}`;
}

/** The user that the first line of each rule generation asks for SCRAM, and who never exists (DESIGN §6). */
export function sentinelUser(generation: number): string {
  return `surefoot_generation_${generation}`;
}

/** An SQL identifier. PostgreSQL: "to include a double quote, write two"; NUL cannot be in one. */
export function quoteIdentifier(name: string): string {
  if (name === '' || name.includes('\0')) throw new TypeError('an SQL identifier is not empty and holds no NUL');
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * An SQL string constant. The `E''` form is used as soon as a backslash is in it, so the result reads the same whatever
 * `standard_conforming_strings` says.
 */
export function quoteLiteral(text: string): string {
  if (text.includes('\0')) throw new TypeError('an SQL string constant holds no NUL');
  const quoted = text.replaceAll("'", "''");
  return text.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`;
}
