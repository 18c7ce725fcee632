import type { Client } from '#postgres';

/**
 * Extensions that an environment may ask for: what PostgreSQL itself calls trusted (its manual, CREATE EXTENSION: it may be
 * created by whoever may create objects in the database), and a few more that give no reach beyond their database.
 * Everything else stays out, above all what reads files, runs programs, opens connections or shows other databases
 * (file_fdw, adminpack, dblink, postgres_fdw, pageinspect, pg_buffercache, languages without a sandbox).
 */
const HARMLESS = ['bloom', 'earthdistance', 'postgis', 'postgis_raster', 'postgis_topology', 'vector'];

const OFFERED = /* sql */ `
  select a.name
    from pg_available_extensions a
    join pg_available_extension_versions v on v.name = a.name and v.version = a.default_version
   where v.trusted or a.name = any ($1)
   order by a.name`;

export async function readExtensions(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(OFFERED, [HARMLESS]);
  return rows.map(({ name }) => name);
}
