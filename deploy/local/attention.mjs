/**
 * What waits for somebody although everything runs: said where it would else be taken for well.
 *
 * @typedef {{ reason: { message: string }, engineId: string | null, operationId: string | null }} OpenCase
 * @typedef {{ id: string, name: string, state: string, waitingFor?: string }} Engine
 * @typedef {{ id: string, kind: string, reason: { message: string } | null, caseId?: string }} Operation
 */

/**
 * A sentence for each thing; what a case tells is not told again by its engine or operation.
 *
 * @param {{ cases: readonly OpenCase[], engines: readonly Engine[], blocked: readonly Operation[] }} found open cases,
 *   all engines, blocked operations
 * @returns {{ places: readonly string[], operations: readonly string[] }} `places`: host and engines, which the worker
 *   takes again by itself once they are as they should be
 */
export function attention({ cases, engines, blocked }) {
  const ofPlaces = cases.filter(({ operationId }) => operationId === null);
  const told = new Set(ofPlaces.map(({ engineId }) => engineId));
  const refused = engines.filter(
    ({ id, state, waitingFor }) =>
      !told.has(id) && (state === 'blocked' || (state === 'ready' && waitingFor !== undefined)),
  );
  const withoutCase = blocked.filter(({ caseId }) => caseId === undefined);
  return {
    places: [
      ...ofPlaces.map(({ reason }) => reason.message),
      ...refused.map(({ name, state, waitingFor }) => waitingFor ?? `engine ${name} is ${state}`),
    ],
    operations: [
      ...cases.filter(({ operationId }) => operationId !== null).map(caseOfOperation),
      ...withoutCase.map(({ id, kind, reason }) => `operation ${id} (${kind}) is blocked${because(reason)}`),
    ],
  };
}

/** @param {OpenCase} found */
function caseOfOperation({ operationId, reason }) {
  return `operation ${operationId} is blocked${because(reason)}`;
}

/** @param {{ message: string } | null} reason */
function because(reason) {
  return reason === null ? '' : `: ${reason.message}`;
}

/** More would push the rest off the screen. */
const SHOWN_MAX = 5;

/** @param {readonly string[]} lines */
export function few(lines) {
  const more = lines.length - SHOWN_MAX;
  return more > 0 ? [...lines.slice(0, SHOWN_MAX), `… and ${more} more`] : lines;
}
