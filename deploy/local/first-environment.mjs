import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { SetupFailure, messageOf, runCommand } from './failure.mjs';
import { homeOf } from './home.mjs';
import { readLocalEnv } from './installation.mjs';
import { watchOperation } from './operation-watch.mjs';
import { REPOSITORY } from './repository.mjs';
import { RestClient, refused } from './rest-client.mjs';

/**
 * The main job, done the way any client does it: over the REST interface, create the environment `hello`, show its
 * effects as they settle, and log in with each of its users. Where it is there already, only the last.
 */

const NAME = 'hello';
const PROJECT = 'default';
const LOGIN_MS = 15_000;

const say = (/** @type {string} */ line) => console.log(line);

await runCommand('npm start', async () => {
  const home = homeOf(REPOSITORY);
  const localEnv = await readLocalEnv(home);
  const client = new RestClient(localEnv);
  await waitForEngine(client);
  const environmentId = await ensureEnvironment(client);
  const { logins } = await client.get(`/v1/environments/${environmentId}/credentials`);
  say(`  Environment ${NAME}: logging in with each of its users`);
  for (const login of logins) await logIn(login);
  sayWhatNext(home, localEnv, logins.find((/** @type {any} */ { tier }) => tier === 'app')?.uri);
});

/**
 * The engine that environments live in is made, and after npm stop started again, by operations like any other. The
 * worker asks for the start before it is ready, so what there is to wait for is known by now.
 *
 * @param {RestClient} client
 */
async function waitForEngine(client) {
  const made = await newestOperation(client, 'engine.create');
  if (made !== undefined && made.state !== 'succeeded') {
    say('  PostgreSQL engine: being made');
    await watchOperation(client, made.id, say);
  }
  const started = await newestOperation(client, 'engine.start');
  // An old start that failed says nothing about the engine as it is now.
  if (started?.state === 'queued' || started?.state === 'running') {
    say('  PostgreSQL engine: being started');
    await watchOperation(client, started.id, say);
  }
}

/**
 * @param {RestClient} client
 * @param {string} kind
 * @returns {Promise<any>}
 */
async function newestOperation(client, kind) {
  /** @type {{ items: any[] }} */
  const { items } = await client.get(`/v1/operations?kind=${kind}`);
  return items.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt)).at(-1);
}

/**
 * @param {RestClient} client
 * @returns {Promise<string>} its id; it is there and ready
 */
async function ensureEnvironment(client) {
  const path = `/v1/projects/${PROJECT}/environments`;
  // A key of its own each time: under an old one the gateway would answer with the old operation, even for an
  // environment that has been deleted since.
  const answer = await client.call('POST', path, { body: { name: NAME }, idempotencyKey: randomUUID() });
  if (answer.status === 202) {
    say(`  Environment ${NAME}: being made`);
    await watchOperation(client, answer.body.id, say);
    return answer.body.environmentId;
  }
  if (answer.status === 409 && answer.body?.code === 'environment_exists') {
    return waitForExisting(client, answer.body.environmentId);
  }
  throw refused(`POST ${path}`, answer);
}

/**
 * It may still be in the making, from a start that was interrupted.
 *
 * @param {RestClient} client
 * @param {string} id
 */
async function waitForExisting(client, id) {
  const { items } = await client.get(`/v1/operations?environment=${id}`);
  for (const { id: operation, state } of items) {
    if (state !== 'queued' && state !== 'running') continue;
    say(`  Environment ${NAME}: an operation on it is under way`);
    await watchOperation(client, operation, say);
  }
  const { state } = await client.get(`/v1/environments/${id}`);
  if (state !== 'ready') {
    throw new SetupFailure(
      `the environment ${NAME} is there but ${state}`,
      `see ./bin/surefoot env show ${NAME}; everything else is up.`,
      { exitCode: state === 'blocked' ? 4 : 1 },
    );
  }
  return id;
}

/**
 * @param {{ tier: string, user: string, uri: string }} login
 */
async function logIn({ tier, user, uri }) {
  const startedAt = performance.now();
  const client = new pg.Client({ connectionString: uri, connectionTimeoutMillis: LOGIN_MS, query_timeout: LOGIN_MS });
  // The server may end the connection while it is idle; a failed login is told below.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('SELECT session_user AS name, current_database() AS database');
    const took = Math.round(performance.now() - startedAt);
    say(`      ${tier.padEnd(9)} ${rows[0].name} in ${rows[0].database} (${took} ms)`);
  } catch (error) {
    throw new SetupFailure(
      `${user} cannot log in: ${messageOf(error)}`,
      `see ./bin/surefoot env show ${NAME} and ./bin/surefoot doctor.`,
      { cause: error },
    );
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * @param {string} home
 * @param {Record<string, string>} localEnv
 * @param {string | undefined} uri the application's; shown here on purpose, and written nowhere
 */
function sayWhatNext(home, localEnv, uri) {
  say(`
Surefoot is up. The database of the environment ${NAME}, as its application reaches it:

  ${uri}

Next:
  psql '${uri}'
  ./bin/surefoot env create my-env --wait     another environment; env credentials my-env shows its users
  ./bin/surefoot env list
  npm stop                                    stops everything and keeps the data; npm start goes on
  npm run reset -- --yes                      removes everything

REST: ${localEnv.SUREFOOT_URL} (description at /openapi.json), key in ${join(home, 'local.env')}`);
}
