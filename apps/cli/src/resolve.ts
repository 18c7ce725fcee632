/** What people call a thing, and its id. */
import { isUuid } from '#kernel';
import type { Engine, Environment, Operation } from './api.ts';
import { CommandFailure, EXIT, Refusal } from './failure.ts';
import type { RestClient } from './rest-client.ts';

/** By id, or by its name in the project. A name that is free again may have been used before; then the latest counts. */
export async function resolveEnvironment(client: RestClient, project: string, nameOrId: string): Promise<Environment> {
  const found = await findEnvironment(client, project, nameOrId);
  if (found !== undefined) return found;
  throw new CommandFailure(
    EXIT.refused,
    'not_found',
    `project ${project} has no environment ${JSON.stringify(nameOrId)}`,
    {
      next: 'see: surefoot env list',
    },
  );
}

async function findEnvironment(
  client: RestClient,
  project: string,
  nameOrId: string,
): Promise<Environment | undefined> {
  if (isUuid(nameOrId)) {
    try {
      return await client.get<Environment>(`/v1/environments/${nameOrId}`);
    } catch (error) {
      // An environment may be named like an id.
      if (!(error instanceof Refusal) || error.code !== 'not_found') throw error;
    }
  }
  const named = await client.list<Environment>(environmentsOf(project), { name: nameOrId });
  return named.find(({ state }) => state !== 'failed') ?? named.at(-1);
}

/** @param ask what needs the operation to be there. @throws CommandFailure what it throws; `not_found` says where they are */
export async function ofOperation<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'not_found') throw error;
    throw new CommandFailure(error.exit, error.code, error.message, { next: 'see: surefoot op list', cause: error });
  }
}

/** What says why an environment is as it is: of a failed one its create, which a delete may have followed. */
export async function lastOperation(
  client: RestClient,
  { id, state }: Pick<Environment, 'id' | 'state'>,
): Promise<Operation | undefined> {
  const { items } = await client.page<Operation>('/v1/operations', {
    environment: id,
    kind: state === 'failed' ? 'environment.create' : undefined,
    limit: '1',
  });
  return items[0];
}

export function environmentsOf(project: string): string {
  return `/v1/projects/${encodeURIComponent(project)}/environments`;
}

export async function resolveEngine(client: RestClient, nameOrId: string | undefined): Promise<Engine> {
  const all = await client.list<Engine>('/v1/admin/engines');
  const live = all.filter(({ state }) => state !== 'failed');
  const candidates = live.length > 0 ? live : all;
  const named =
    nameOrId === undefined
      ? candidates
      : all.filter(({ id }) => id === nameOrId).concat(candidates.filter(({ name }) => name === nameOrId));
  const [engine, another] = named;
  if (engine === undefined)
    throw new CommandFailure(EXIT.refused, 'not_found', 'there is no such engine', {
      next: 'see: surefoot engine list',
    });
  if (nameOrId === undefined && another !== undefined)
    throw new CommandFailure(EXIT.usage, 'usage', 'there are several engines: name one', {
      next: 'see: surefoot engine list',
    });
  return engine;
}
