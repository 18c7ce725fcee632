import { setTimeout as sleep } from 'node:timers/promises';
import { SetupFailure } from './failure.mjs';

/** Follows one operation on the terminal: a line for each effect as it settles. */

const POLL_MS = 100;
const SIGN_MS = 5_000;
const DEADLINE_MS = 300_000;

/**
 * @typedef {object} Surroundings
 * @property {import('./rest-client.mjs').RestClient} client
 * @property {(line: string) => void} say
 * @property {(command: string) => string} typed a command as it works when it is pasted
 */

/**
 * @param {Surroundings} surroundings
 * @param {string} id
 * @returns {Promise<any>} the operation, succeeded
 */
export async function watchOperation({ client, say, typed }, id) {
  const startedAt = performance.now();
  let shown = 0;
  let saidAt = startedAt;
  for (;;) {
    const operation = await client.get(`/v1/operations/${id}`);
    const settled = operation.effects.filter((/** @type {any} */ { outcome }) => outcome !== 'pending');
    for (const effect of settled.slice(shown)) say(`      ${describeEffect(effect)}`);
    if (settled.length > shown) saidAt = performance.now();
    shown = settled.length;
    if (operation.state === 'succeeded') return operation;
    if (['failed', 'cancelled', 'blocked'].includes(operation.state)) throw endedBadly(operation, typed);
    if (performance.now() - saidAt > SIGN_MS) {
      say(`    … ${operation.waitingFor ?? operation.stage ?? operation.state}`);
      saidAt = performance.now();
    }
    if (performance.now() - startedAt > DEADLINE_MS) throw tooLong(operation, typed);
    await sleep(POLL_MS);
  }
}

/**
 * @param {any} effect
 */
function describeEffect({ kind, outcome, startedAt, settledAt }) {
  const tookMs = Date.parse(settledAt) - Date.parse(startedAt ?? settledAt);
  return `${String(kind).padEnd(18)} ${String(outcome).padEnd(8)} ${String(tookMs).padStart(6)} ms`;
}

/**
 * @param {any} operation
 * @param {Surroundings['typed']} typed
 */
export function endedBadly({ id, kind, state, reason, caseId }, typed) {
  const show = caseId === undefined ? `./bin/surefoot op show ${id}` : `./bin/surefoot case show ${caseId}`;
  const next =
    state === 'blocked'
      ? `it waits for a decision; see what is known: ${typed(show)}`
      : `see ${typed(show)} and log/worker.log in the state folder, then run npm start again.`;
  const exitCode = state === 'blocked' ? 4 : 1;
  return new SetupFailure(`${kind} ended as ${state}: ${reason?.message ?? reason?.code ?? 'no reason given'}`, next, {
    exitCode,
  });
}

/**
 * @param {any} operation
 * @param {Surroundings['typed']} typed
 */
function tooLong({ id, kind, state, waitingFor }, typed) {
  const why = waitingFor ? `, waiting for ${waitingFor}` : '';
  return new SetupFailure(
    `${kind} is still ${state} after ${DEADLINE_MS / 60_000} minutes${why}`,
    `it goes on by itself: ${typed(`./bin/surefoot op watch ${id}`)} follows it. If nothing moves, read log/worker.log.`,
    { exitCode: 6 },
  );
}
