import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text as bodyOf } from 'node:stream/consumers';
import pg from 'pg';

/**
 * Notes over HTTP: `GET /notes`, `POST /notes` with `{"text": "…"}`, `GET /health`.
 *
 * The connection string is a file that Surefoot mounts. With DATABASE_HOST the same user and database are reached through
 * a pooler beside it, without TLS, since nobody else is on that network; the pooler has TLS to the server.
 */

const url = new URL(readFileSync('/run/surefoot/database_url', 'utf8').trim());
const { DATABASE_HOST: pooler, DATABASE_PORT: poolerPort = '6432', PORT: port = '8080' } = process.env;

const pool = new pg.Pool({
  user: decodeURIComponent(url.username),
  password: decodeURIComponent(url.password),
  database: decodeURIComponent(url.pathname.slice(1)),
  max: 5,
  connectionTimeoutMillis: 5_000,
  ...(pooler === undefined
    ? {
        host: url.hostname,
        port: Number(url.port),
        ssl: { ca: readFileSync(url.searchParams.get('sslrootcert') ?? '') },
      }
    : { host: pooler, port: Number(poolerPort) }),
});
// Of a connection that nobody uses at the moment; the next request gets another one.
pool.on('error', (error) => console.error(`connection lost: ${error.message}`));

const NOTE_MAX_BYTES = 10_000;

/** @type {Record<string, (request: import('node:http').IncomingMessage) => Promise<{ status: number, body: unknown }>>} */
const routes = {
  'GET /health': async () => {
    await pool.query('SELECT 1');
    return { status: 200, body: { database: 'answers' } };
  },
  'GET /notes': async () => {
    const { rows } = await pool.query('SELECT id, text, written_at FROM notes ORDER BY id');
    return { status: 200, body: rows };
  },
  'POST /notes': async (request) => {
    const length = Number(request.headers['content-length']);
    if (!(length <= NOTE_MAX_BYTES)) return { status: 413, body: { error: `${NOTE_MAX_BYTES} bytes at most` } };
    const text = textOf(await bodyOf(request));
    if (text === undefined) return { status: 400, body: { error: 'give {"text": "…"}' } };
    const { rows } = await pool.query('INSERT INTO notes (text) VALUES ($1) RETURNING id, text, written_at', [text]);
    return { status: 201, body: rows[0] };
  },
};

const server = createServer((request, response) => {
  void answer(request).then(({ status, body }) => {
    // Somebody asks for that one every few seconds.
    if (request.url !== '/health' || status !== 200) console.log(`${request.method} ${request.url} ${status}`);
    response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
  });
});

/** @param {import('node:http').IncomingMessage} request */
async function answer(request) {
  const route = routes[`${request.method} ${request.url}`];
  if (route === undefined) return { status: 404, body: { error: 'there is no such thing' } };
  try {
    return await route(request);
  } catch (error) {
    return { status: 503, body: { error: error.message } };
  }
}

/** @param {string} body @returns {string | undefined} */
function textOf(body) {
  try {
    const { text } = JSON.parse(body);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

server.listen(Number(port), () => console.log(`notes are served on port ${port}`));

// The first process of a container is not ended by a signal that it does not handle.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    server.close(() => void pool.end());
    server.closeAllConnections();
  });
}
