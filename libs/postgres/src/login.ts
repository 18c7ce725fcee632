import pg from 'pg';

/** One login of an environment, as its user would make it from the host. */
export interface Login {
  /** Published on loopback. */
  readonly port: number;
  /** PEM of the host's certificate authority. */
  readonly ca: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

const LOGIN_TIMEOUT_MS = 10_000;

/** Over TCP and TLS, with the server's certificate checked against name and authority. */
export async function connectLogin(login: Login): Promise<pg.Client> {
  const { port, ca, user, password, database } = login;
  const client = new pg.Client({
    host: 'localhost',
    port,
    user,
    password,
    database,
    application_name: 'surefoot probe',
    ssl: { ca, servername: 'localhost', rejectUnauthorized: true },
    connectionTimeoutMillis: LOGIN_TIMEOUT_MS,
    query_timeout: LOGIN_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
