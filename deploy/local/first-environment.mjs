import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { attention, few } from './attention.mjs';
import { SetupFailure, errnoOf, messageOf, runCommand } from './failure.mjs';
import { homeOf, typed } from './home.mjs';
import { readLocalEnv } from './installation.mjs';
import { endedBadly, watchOperation } from './operation-watch.mjs';
import { REPOSITORY } from './repository.mjs';
import { RestClient, refused } from './rest-client.mjs';

/**
 * The main job, done the way any client does it: over the REST interface, create the environment `hello`, show its
 * effects as they settle, and log in with each of its users. Where it is there already, only the last.
 */

const NAME = 'hello';
const PROJECT = 'default';
const LOGIN_MS = 15_000;
/**
 * Of a server that was started a moment ago: it does not listen yet, or reads its log back (SQLSTATE 57P03), or Docker's
 * proxy took the connection and closed it, for which the client has no code.
 */
const NOT_YET = new Set(['ECONNREFUSED', 'ECONNRESET', '57P03', undefined]);
const AGAIN_AFTER_MS = 200;
/** The worker compares its host and engines every two seconds: what it found before all was up may be over. */
const SETTLE_MS = 6_000;

const home = homeOf(REPOSITORY);
const say = (/** @type {string} */ line) => console.log(line);
const pasted = (/** @type {string} */ command) => typed(command, home, REPOSITORY);

await runCommand('npm start', async () => {
  const localEnv = await readLocalEnv(home);
  const client = new RestClient(localEnv);
  await waitForEngine(client);
  const environmentId = await ensureEnvironment(client);
  const { logins } = await client.get(`/v1/environments/${environmentId}/credentials`);
  say(`  Environment ${NAME}: logging in with each of its users`);
  for (const login of logins) await logIn(login);
  sayWhatWaits(await whatWaits(client));
  sayWhatNext(localEnv, logins.find((/** @type {any} */ { tier }) => tier === 'app')?.uri);
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
    await watch(client, made.id);
  }
  const started = await newestOperation(client, 'engine.start');
  // An old start that failed says nothing about the engine as it is now.
  if (started?.state === 'queued' || started?.state === 'running') {
    say('  PostgreSQL engine: being started');
    await watch(client, started.id);
  }
}

/**
 * @param {RestClient} client
 * @param {string} id
 */
function watch(client, id) {
  return watchOperation({ client, say, typed: pasted }, id);
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
    await watch(client, answer.body.id);
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
  // What waits behind a blocked one would be waited for in vain.
  const blocked = items.find((/** @type {any} */ operation) => operation.state === 'blocked');
  if (blocked !== undefined) throw endedBadly(blocked, pasted);
  for (const { id: operation, state } of items) {
    if (state !== 'queued' && state !== 'running') continue;
    say(`  Environment ${NAME}: an operation on it is under way`);
    await watch(client, operation);
  }
  const { state } = await client.get(`/v1/environments/${id}`);
  if (state !== 'ready') {
    throw new SetupFailure(
      `the environment ${NAME} is there but ${state}`,
      `see ${pasted(`./bin/surefoot env show ${NAME}`)}; everything else is up.`,
      { exitCode: state === 'blocked' ? 4 : 1 },
    );
  }
  return id;
}

/**
 * @param {{ tier: string, user: string, uri: string }} login
 */
async function logIn(login) {
  const giveUpAt = performance.now() + LOGIN_MS;
  for (;;) {
    try {
      return await tryToLogIn(login);
    } catch (error) {
      if (!NOT_YET.has(errnoOf(error)) || performance.now() > giveUpAt) throw cannotLogIn(login.user, error);
      await sleep(AGAIN_AFTER_MS);
    }
  }
}

/** @param {{ tier: string, uri: string }} login */
async function tryToLogIn({ tier, uri }) {
  const { default: pg } = await import('pg');
  const startedAt = performance.now();
  const client = new pg.Client({ connectionString: uri, connectionTimeoutMillis: LOGIN_MS, query_timeout: LOGIN_MS });
  // The server may end the connection while it is idle; a failed login is told below.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('SELECT session_user AS name, current_database() AS database');
    const took = Math.round(performance.now() - startedAt);
    say(`      ${tier.padEnd(9)} ${rows[0].name} in ${rows[0].database} (${took} ms)`);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * @param {string} user
 * @param {unknown} error
 */
function cannotLogIn(user, error) {
  return new SetupFailure(
    `${user} cannot log in: ${messageOf(error)}`,
    `see ${pasted(`./bin/surefoot env show ${NAME}`)} and ${pasted('./bin/surefoot doctor')}.`,
    { cause: error },
  );
}

/** @param {RestClient} client */
async function whatWaits(client) {
  const giveUpAt = performance.now() + SETTLE_MS;
  for (;;) {
    const [cases, engines, blocked] = await Promise.all(
      ['/v1/admin/cases?state=open', '/v1/admin/engines', '/v1/operations?state=blocked'].map(
        async (path) => (await client.get(path)).items,
      ),
    );
    const found = attention({ cases, engines, blocked });
    if (found.places.length === 0 || performance.now() > giveUpAt) return [...found.places, ...found.operations];
    await sleep(AGAIN_AFTER_MS);
  }
}

/** @param {readonly string[]} found */
function sayWhatWaits(found) {
  if (found.length === 0) return;
  say(`
This waits for you:
${few(found)
  .map((line) => `  ${line}`)
  .join('\n')}
See what is known of it: ${pasted('./bin/surefoot case list')}`);
}

/**
 * @param {Record<string, string>} localEnv
 * @param {string | undefined} uri the application's; shown here on purpose, and written nowhere
 */
function sayWhatNext(localEnv, uri) {
  /** @type {readonly (readonly [string, string])[]} */
  const commands = [
    [pasted('./bin/surefoot env create my-env --wait'), 'another environment'],
    [pasted('./bin/surefoot env credentials my-env'), 'its users and passwords'],
    [pasted('./bin/surefoot env list'), 'all of them'],
    [pasted('npm stop'), 'stops everything and keeps the data'],
    [pasted('npm run reset -- --yes'), 'removes everything'],
  ];
  const width = Math.max(...commands.map(([command]) => command.length));
  say(`
Surefoot is up. The database of the environment ${NAME}, as its application reaches it:

  ${uri}

Next:
  psql '${uri}'
${commands.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`).join('\n')}

REST: ${localEnv.SUREFOOT_URL} (description at /openapi.json), key in ${join(home, 'local.env')}`);
}
