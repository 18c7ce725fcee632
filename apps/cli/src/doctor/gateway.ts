/** What the gateway says: that it is ready, that the key is good, and what waits for somebody. */
import type { Case, Engine, Environment, Operation, Project } from '../api.ts';
import { environmentsOf } from '../resolve.ts';
import type { RestClient } from '../rest-client.ts';
import { failed, ok, warning, type Finding } from './finding.ts';

export async function checkGateway(client: RestClient, url: string): Promise<Finding> {
  await client.get('/health/ready');
  await client.page<Project>('/v1/projects', { limit: '1' });
  return ok('gateway', `ready at ${url}, and the API key is accepted`);
}

export async function checkEngines(client: RestClient): Promise<Finding> {
  const engines = (await client.list<Engine>('/v1/admin/engines')).filter(({ state }) => state !== 'failed');
  if (engines.length === 0) return failed('engines', 'there is none: run npm start, which asks for one');
  const away = engines.filter(({ state, waitingFor }) => state !== 'creating' && waitingFor !== undefined);
  if (away.length > 0)
    return failed('engines', away.map(({ name, waitingFor }) => `${name} takes no work: ${waitingFor}`).join('; '));
  const text = engines.map(({ name, state }) => `${name} is ${state}`).join('; ');
  return engines.every(({ state }) => state === 'ready') ? ok('engines', text) : warning('engines', text);
}

/** So many are named, the rest is counted. */
const NAMED_MAX = 5;

export async function checkEnvironments(client: RestClient): Promise<Finding> {
  const projects = await client.list<Project>('/v1/projects');
  const unwell: Environment[] = [];
  for (const { name } of projects)
    for (const state of ['blocked', 'degraded'])
      unwell.push(...(await client.list<Environment>(environmentsOf(name), { state })));
  if (unwell.length === 0) return ok('environments', 'none is degraded or blocked');
  const named = unwell.slice(0, NAMED_MAX).map(({ name, id, state, reason }) => {
    const why = reason === null ? '' : `: ${reason.message.split('\n')[0] ?? ''} (${reason.code})`;
    return `${name} (${id}) is ${state}${why}`;
  });
  const more = unwell.length > NAMED_MAX ? [`${unwell.length - NAMED_MAX} more`] : [];
  return warning('environments', `${[...named, ...more].join('; ')}; see: surefoot env show`);
}

const SEE_CASES = 'see: surefoot case list';

export async function checkCases(client: RestClient): Promise<Finding> {
  const cases = await client.list<Case>('/v1/admin/cases', { state: 'open' });
  const [newest] = cases;
  if (newest === undefined) return ok('cases', 'none is open');
  // Of a host or an engine: it takes no work, while a case of an operation stops its own environment only.
  const refused = cases.filter(({ operationId }) => operationId === null);
  if (refused.length > 0)
    return failed('cases', `no work is taken: ${refused.map(({ reason }) => reason.message).join('; ')}; ${SEE_CASES}`);
  return warning('cases', `${cases.length} open, the newest: ${newest.reason.message}; ${SEE_CASES}`);
}

const STUCK_AFTER_MS = 60_000;

export async function checkOperations(client: RestClient): Promise<Finding> {
  const queued = await client.list<Operation>('/v1/operations', { state: 'queued' });
  const old = queued.filter(({ createdAt }) => Date.now() - Date.parse(createdAt) > STUCK_AFTER_MS);
  if (old.length === 0)
    return ok('operations', queued.length === 0 ? 'none waits' : `${queued.length} wait for their turn`);
  const oldest = old.at(-1);
  const why = oldest?.waitingFor === undefined ? 'no reason is given' : `it waits for ${oldest.waitingFor}`;
  return warning('operations', `${old.length} wait for more than a minute; the oldest is ${oldest?.id ?? ''}: ${why}`);
}
