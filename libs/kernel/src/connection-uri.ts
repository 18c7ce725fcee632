/** A connection URI as libpq reads it (PostgreSQL manual, "Connection URIs"); node-postgres reads the same. */

export interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  /** Path of the file with the authority that the server's certificate is verified against. */
  readonly sslRootCert: string;
}

export function connectionUri({ host, port, database, user, password, sslRootCert }: ConnectionTarget): string {
  const root = sslRootCert.split('/').map(percentEncoded).join('/');
  return (
    `postgresql://${percentEncoded(user)}:${percentEncoded(password)}@${host}:${port}` +
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
