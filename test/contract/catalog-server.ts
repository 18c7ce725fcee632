/** Databases of our own in the running stack's catalog server, so that a test sees nothing but what it made. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { homeFromEnvironment, loadSettings } from '#settings';

export const settings = loadSettings(homeFromEnvironment(process.env));

export interface OwnDatabase {
  readonly url: string;
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  drop(): Promise<void>;
}

export async function ownDatabase(): Promise<OwnDatabase> {
  const name = `contract_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`create database ${name}`);
  const url = new URL(settings.catalogUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 2 });
  pool.on('error', () => undefined);
  return {
    url: url.href,
    query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(text, [...values])).rows,
    async drop() {
      await pool.end();
      await asAdministrator(`drop database ${name} with (force)`);
    },
  };
}

async function asAdministrator(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: settings.catalogUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
