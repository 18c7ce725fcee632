/** Databases of our own in the running stack's catalog server, so that a test sees nothing but what it made. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { homeFromEnvironment, loadSettings } from '#settings';
import { inStackContainer } from '#testing';

export const settings = loadSettings(homeFromEnvironment(process.env));

export interface OwnDatabase {
  readonly url: string;
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  drop(): Promise<void>;
}

export async function ownDatabase(): Promise<OwnDatabase> {
  const name = `contract_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`create database ${name} owner surefoot`);
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

/** The role of local.env may not make databases; the server's superuser is only known inside its container. */
async function asAdministrator(statement: string): Promise<void> {
  const command = ['psql', '-X', '-v', 'ON_ERROR_STOP=1', '-c', statement];
  await inStackContainer(settings.dockerHost, settings.catalogUrl, { user: 'postgres', command });
}
