/**
 * `env create NAME --wait`: whatever is there already, in the end there is an environment of that name, ready, and with the
 * settings that were asked for; or the reason why not. It may be run again at any time, also beside itself.
 */
import type { Environment, Operation } from './api.ts';
import { NOT_COMPARED, serviceDifferences, UNCHANGEABLE } from './compare-services.ts';
import { CommandFailure, endedBadly, EXIT, Refusal } from './failure.ts';
import type { Follower } from './follow-operation.ts';
import { environmentsOf } from './resolve.ts';
import type { RestClient } from './rest-client.ts';

/** Only what was asked for; the rest is the gateway's choice. */
export interface Wanted {
  readonly name: string;
  readonly extensions?: readonly string[];
  readonly connectionLimit?: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** As the API takes them: the gateway judges them. */
  readonly services?: readonly unknown[];
}

/** Rounds of "somebody else was faster": each ends an operation of somebody else. */
const ROUNDS_MAX = 5;

/** @param note for people: what was found there */
export async function ensureEnvironment(
  client: RestClient,
  follower: Follower,
  project: string,
  wanted: Wanted,
  note: (line: string) => void,
): Promise<Environment> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const id = await createOrFind(client, follower, project, wanted, note);
    const environment = await settled(client, follower, id);
    if (environment.state === 'ready') return environment;
    // What the name stood for went away while we looked at it: it is free now.
    if (environment.state !== 'deleted' && environment.state !== 'failed') throw notReady(environment);
  }
  throw new CommandFailure(EXIT.failed, 'not_ready', `${wanted.name} was made and removed by others again and again`);
}

async function createOrFind(
  client: RestClient,
  follower: Follower,
  project: string,
  wanted: Wanted,
  note: (line: string) => void,
): Promise<string> {
  try {
    const accepted = await client.post<Operation>(environmentsOf(project), wanted);
    const ended = await follower.follow(accepted.id);
    if (ended.state !== 'succeeded') throw endedBadly(ended);
    return ended.environmentId ?? '';
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'environment_exists') throw error;
    const id = error.problem.environmentId;
    if (id === undefined) throw error;
    const environment = await client.get<Environment>(`/v1/environments/${id}`);
    if (environment.state !== 'deleting') refuseOther(environment, wanted);
    note(`environment ${environment.name} exists already, it is ${environment.state}`);
    if (wanted.services !== undefined && environment.state !== 'deleting') note(`${NOT_COMPARED}; ${UNCHANGEABLE}`);
    return id;
  }
}

/** Waits for whatever is under way. */
async function settled(client: RestClient, follower: Follower, id: string): Promise<Environment> {
  const open = await openOperation(client, id);
  if (open !== undefined) {
    const ended = await follower.follow(open.id);
    if (ended.state === 'blocked' || (ended.state === 'failed' && ended.kind === 'environment.create'))
      throw endedBadly(ended);
  }
  let environment = await client.get<Environment>(`/v1/environments/${id}`);
  while (goesByItself(environment)) {
    await follower.pause(notReadyText(environment));
    const started = await openOperation(client, id);
    if (started !== undefined) return settled(client, follower, id);
    environment = await client.get<Environment>(`/v1/environments/${id}`);
  }
  if (environment.state !== 'blocked') return environment;
  const blocked = await openOperation(client, id);
  throw blocked?.state === 'blocked' ? endedBadly(blocked) : notReady(environment);
}

/** The one that decides what becomes of the environment: blocked before running before queued. */
async function openOperation(client: RestClient, environmentId: string): Promise<Operation | undefined> {
  for (const state of ['blocked', 'running', 'queued']) {
    const { items } = await client.page<Operation>('/v1/operations', { environment: environmentId, state, limit: '1' });
    if (items[0] !== undefined) return items[0];
  }
  return undefined;
}

/** It is there, and is not what was asked for: that is no success. */
function refuseOther(found: Environment, wanted: Wanted): void {
  const differences: string[] = [];
  const compare = (what: string, has: unknown, asked: unknown): void => {
    if (asked !== undefined && JSON.stringify(has) !== JSON.stringify(asked))
      differences.push(`${what}: it has ${JSON.stringify(has)}, asked for is ${JSON.stringify(asked)}`);
  };
  compare('extensions', [...found.extensions].sort(), wanted.extensions && [...wanted.extensions].sort());
  compare('connectionLimit', found.connectionLimit, wanted.connectionLimit);
  compare('labels', sorted(found.labels), wanted.labels && sorted(wanted.labels));
  if (wanted.services !== undefined) differences.push(...serviceDifferences(found.services, wanted.services));
  if (differences.length === 0) return;
  const see = `see: surefoot env show ${found.id}`;
  throw new CommandFailure(
    EXIT.refused,
    'environment_exists',
    `environment ${found.name} exists with other settings (${differences.join('; ')})`,
    { next: wanted.services === undefined ? see : `${NOT_COMPARED}; ${UNCHANGEABLE}; ${see}` },
  );
}

function sorted(labels: Readonly<Record<string, string>>): unknown {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Reasons of a degraded environment that may be gone in a moment: its daemon starts the service again. */
const PASSING: readonly string[] = ['service_restarted', 'service_restarting'];

function goesByItself({ state, reason }: Environment): boolean {
  return state === 'updating' || (state === 'degraded' && reason !== null && PASSING.includes(reason.code));
}

function notReady(environment: Environment): CommandFailure {
  const { id, state, reason } = environment;
  return new CommandFailure(state === 'blocked' ? EXIT.blocked : EXIT.failed, 'not_ready', notReadyText(environment), {
    next: `see: surefoot ${reason === null ? 'op list --environment' : 'env show'} ${id}`,
  });
}

function notReadyText({ name, state, reason }: Environment): string {
  return `environment ${name} is ${state}${reason === null ? '' : `: ${reason.message} (${reason.code})`}`;
}
