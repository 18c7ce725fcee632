/** An environment and its credentials as the API shows them. Computed at each look, so never out of date (FIELD-CASES B119). */
import type { ShownEnvironment } from '#catalog';
import { environmentNames, type Tier } from '#kernel';
import type { EnvironmentView } from '../schemas/environment.ts';

/** Engines are published on loopback, and their certificate names it. */
const CONNECTION_HOST = 'localhost';

export function toEnvironmentView(row: ShownEnvironment): EnvironmentView {
  return {
    id: row.id,
    project: row.project,
    name: row.name,
    state: row.state,
    engine: row.engine,
    host: row.host,
    profile: row.profile,
    extensions: [...row.extensions],
    connectionLimit: row.connection_limit,
    labels: row.labels,
    services: [],
    connection: {
      host: CONNECTION_HOST,
      port: row.port,
      database: row.database_name,
      users: environmentNames(row.name, row.id).logins,
      sslmode: 'verify-full',
    },
    createdAt: row.created_at.toISOString(),
    lastObservedAt: row.last_observed_at?.toISOString() ?? null,
  };
}

export function connectionUri(
  environment: Pick<ShownEnvironment, 'port' | 'database_name'>,
  login: { readonly user: string; readonly password: string },
  caFile: string,
): string {
  const { port, database_name: database } = environment;
  const root = caFile.split('/').map(percentEncoded).join('/');
  return (
    `postgresql://${percentEncoded(login.user)}:${percentEncoded(login.password)}@${CONNECTION_HOST}:${port}` +
    `/${pathEncoded(database)}?sslmode=verify-full&sslrootcert=${root}`
  );
}

/** Everything but RFC 3986's unreserved characters, so that the address also survives a shell's quotes. */
function percentEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * In the path node-postgres decodes with `decodeURI`, which leaves reserved characters as they are, and libpq decodes
 * everything. Reserved characters that a path may hold (RFC 3986, `pchar`) stay bare, so both read the same; `?` and `#`
 * cannot, and only libpq reads those.
 */
function pathEncoded(text: string): string {
  return percentEncoded(text).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent);
}

export function loginAad(environmentId: string, tier: Tier, what: 'password' | 'verifier'): string {
  return `login:${environmentId}:${tier}:${what}`;
}
