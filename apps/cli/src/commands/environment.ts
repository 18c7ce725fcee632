import { InvalidArgumentError, type Command } from 'commander';
import { TIERS, type Tier } from '#kernel';
import type { EnvironmentState } from '#protocol';
import type { Environment, Login, Operation } from '../api.ts';
import { ensureEnvironment, type Wanted } from '../ensure-environment.ts';
import { CommandFailure, endedBadly, EXIT, Refusal } from '../failure.ts';
import { readList } from '../input.ts';
import {
  label,
  positive,
  repeated,
  service,
  waitOf,
  withJson,
  withProject,
  withWait,
  type JsonOption,
  type NamedImage,
  type ProjectOption,
  type WaitOptions,
} from '../options.ts';
import { environmentsOf, lastOperation, resolveEnvironment } from '../resolve.ts';
import { serviceDetails, serviceNamer, servicesText } from '../service-text.ts';
import { fields, printable, reasonText, show, table, timeText } from '../terminal.ts';
import { follower, type Context } from './context.ts';
import { logsCommand } from './logs.ts';
import { acceptedText } from './operation.ts';

type Common = JsonOption & ProjectOption;

export function environmentCommands(parent: Command, context: Context): void {
  const env = parent.command('env').description('environments: databases with their logins and services');

  const create = env
    .command('create')
    .argument('<name>')
    .description('make an environment; with --wait, make sure that there is one');
  withJson(withWait(withProject(create)))
    .option('--extension <name>', 'an extension it shall have; may be repeated', repeated, [])
    .option('--connection-limit <n>', 'connections at a time', positive)
    .option('--label <name=value>', 'may be repeated', label, {})
    .option('--services <file>', 'a JSON list of services, as the API takes it; - for standard input')
    .option('--service <name=image>', 'a service that needs nothing more; may be repeated', service, [])
    .action((name: string, options: CreateOptions) => createEnvironment(context, name, options));

  withJson(withProject(env.command('list').description('environments of a project'))).action((options: Common) =>
    listEnvironments(context, options),
  );

  withJson(withProject(env.command('show').argument('<name-or-id>').description('one environment')))
    .option('--verbose', 'what each service was asked for with too')
    .action((nameOrId: string, options: Common & { readonly verbose?: boolean }) =>
      showEnvironment(context, nameOrId, options),
    );

  const credentials = env
    .command('credentials')
    .argument('<name-or-id>')
    .description('users and passwords; each look is audited');
  withJson(withProject(credentials))
    .option('--tier <tier>', `only this one: ${TIERS.join(', ')}`, tier)
    .action((nameOrId: string, options: Common & { tier?: Tier }) => showCredentials(context, nameOrId, options));

  logsCommand(env, context);

  const remove = env.command('delete').argument('<name-or-id>').description('remove an environment with all its data');
  withJson(withWait(withProject(remove)))
    .option('--yes', 'do not ask')
    .action((nameOrId: string, options: DeleteOptions) => deleteEnvironment(context, nameOrId, options));
}

async function showEnvironment(
  { client, terminal }: Context,
  nameOrId: string,
  { project, json, verbose }: Common & { readonly verbose?: boolean },
): Promise<void> {
  const rest = client();
  const environment = await resolveEnvironment(rest, project, nameOrId);
  const last =
    json !== true && EXPLAINED.includes(environment.state) ? await lastOperation(rest, environment) : undefined;
  show(terminal, json === true, environment, () => environmentText(environment, last, verbose));
}

/** Why they are so is said by an operation. */
const EXPLAINED: readonly EnvironmentState[] = ['failed', 'blocked'];
/** Of these no database and no login is left. */
const WITHOUT_DATABASE: readonly EnvironmentState[] = ['failed', 'deleted'];

type CreateOptions = Common &
  WaitOptions & {
    readonly extension: readonly string[];
    readonly connectionLimit?: number;
    readonly label: Readonly<Record<string, string>>;
    readonly services?: string;
    readonly service: readonly NamedImage[];
  };

async function createEnvironment(context: Context, name: string, options: CreateOptions): Promise<void> {
  const { extension, connectionLimit, label: labels } = options;
  const services = await servicesOf(context, options);
  const wanted: Wanted = {
    name,
    ...(extension.length === 0 ? {} : { extensions: extension }),
    ...(connectionLimit === undefined ? {} : { connectionLimit }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(services === undefined ? {} : { services }),
  };
  try {
    await createNamed(context, wanted, options);
  } catch (error) {
    if (!(error instanceof Refusal) || error.errors.length === 0) throw error;
    throw new CommandFailure(error.exit, error.code, error.message, {
      errors: error.errors,
      nameOf: serviceNamer(services ?? []),
      cause: error,
    });
  }
}

async function createNamed(context: Context, wanted: Wanted, options: CreateOptions): Promise<void> {
  const { terminal } = context;
  const { project, json } = options;
  const client = context.client();
  if (options.wait === true) {
    const wait = follower(context, client, waitOf(options), json);
    const note = (line: string): void => terminal.err(printable(line));
    const environment = await ensureEnvironment(client, wait, project, wanted, json === true ? () => undefined : note);
    show(terminal, json === true, environment, () => environmentText(environment));
    return;
  }
  try {
    const accepted = await client.post<Operation>(environmentsOf(project), wanted);
    show(terminal, json === true, accepted, () => acceptedText(accepted));
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'environment_exists') throw error;
    throw new CommandFailure(error.exit, error.code, error.message, {
      next: `to go on with the one that is there: surefoot env create … --wait, or surefoot env show ${error.problem.environmentId ?? wanted.name}`,
    });
  }
}

/** @returns undefined when nothing was said of services */
async function servicesOf(
  { terminal }: Context,
  { services: file, service: named }: CreateOptions,
): Promise<readonly unknown[] | undefined> {
  if (file === undefined) return named.length === 0 ? undefined : named;
  return [...(await readList(terminal, file)), ...named];
}

async function listEnvironments({ client, terminal }: Context, { project, json }: Common): Promise<void> {
  const environments = await client().list<Environment>(environmentsOf(project));
  show(terminal, json === true, environments, () =>
    table([
      ['NAME', 'STATE', 'DATABASE', 'PORT', 'ID'],
      ...environments.map(({ name, state, connection, id }) => [
        name,
        state,
        connection.database,
        String(connection.port),
        id,
      ]),
    ]),
  );
}

async function showCredentials(
  { client, terminal }: Context,
  nameOrId: string,
  { project, json, tier: only }: Common & { readonly tier?: Tier },
): Promise<void> {
  const rest = client();
  const { id } = await resolveEnvironment(rest, project, nameOrId);
  const { logins } = await rest.get<{ readonly logins: readonly Login[] }>(`/v1/environments/${id}/credentials`);
  const shown = logins.filter((login) => only === undefined || login.tier === only);
  show(terminal, json === true, { logins: shown }, () =>
    shown
      .map((login) => fields({ tier: login.tier, user: login.user, password: login.password, uri: login.uri }))
      .join('\n\n'),
  );
}

type DeleteOptions = Common & WaitOptions & { readonly yes?: boolean };

async function deleteEnvironment(context: Context, nameOrId: string, options: DeleteOptions): Promise<void> {
  const { terminal } = context;
  const client = context.client();
  const environment = await resolveEnvironment(client, options.project, nameOrId);
  // A name may have been used before: whoever deletes is told which one it was.
  const subject = `${environment.name} (${environment.id}, ${environment.state})`;
  if (options.yes !== true) {
    if (!terminal.stdinIsTerminal)
      throw new CommandFailure(EXIT.usage, 'usage', 'nobody is here to confirm the delete', { next: 'add --yes' });
    if (!(await terminal.confirm(printable(`Delete environment ${subject} with all its data?`))))
      throw new CommandFailure(EXIT.refused, 'not_confirmed', 'nothing was deleted');
  }
  const accepted = await acceptDelete(context, environment.id, options);
  if (options.wait !== true) {
    show(terminal, options.json === true, accepted, () => acceptedText(accepted, subject));
    return;
  }
  const ended = await follower(context, client, waitOf(options), options.json).follow(accepted.id);
  if (ended.state !== 'succeeded') throw endedBadly(ended);
  show(terminal, options.json === true, ended, () =>
    printable(`environment ${environment.name} (${environment.id}) is deleted`),
  );
}

/** A delete that is under way already is as good as ours. */
async function acceptDelete({ client }: Context, id: string, { wait }: DeleteOptions): Promise<Operation> {
  const rest = client();
  try {
    return await rest.delete<Operation>(`/v1/environments/${id}`);
  } catch (error) {
    if (wait !== true || !(error instanceof Refusal) || error.code !== 'environment_busy') throw error;
    const { operationId } = error.problem;
    if (operationId === undefined) throw error;
    return rest.get<Operation>(`/v1/operations/${operationId}`);
  }
}

function tier(text: string): Tier {
  const found = TIERS.find((known) => known === text);
  if (found === undefined) throw new InvalidArgumentError(`It is one of ${TIERS.join(', ')}.`);
  return found;
}

/** @param last the operation that says why it is so */
function environmentText(environment: Environment, last?: Operation, verbose = false): string {
  const { name, id, project, state, engine, host, connection, extensions, connectionLimit, labels } = environment;
  const { services } = environment;
  const reason = environment.reason ?? last?.reason ?? null;
  const hasDatabase = !WITHOUT_DATABASE.includes(state);
  const pairs = Object.entries(labels).map(([label_, value]) => `${label_}=${value}`);
  const text = fields({
    name,
    id,
    project,
    state,
    reason: reason === null ? undefined : reasonText(reason),
    see: last === undefined ? undefined : `surefoot op show ${last.id}`,
    engine: `${engine} on host ${host}`,
    ...(hasDatabase
      ? {
          address: `${connection.host}:${connection.port}, sslmode ${connection.sslmode}`,
          database: connection.database,
          users: Object.values(connection.users).join(', '),
        }
      : {}),
    extensions: extensions.length === 0 ? undefined : extensions.join(', '),
    connections: connectionLimit,
    labels: pairs.length === 0 ? undefined : pairs.join(', '),
    created: timeText(environment.createdAt),
    connect: state === 'ready' ? `surefoot psql ${id}` : undefined,
  });
  const shown = services.length === 0 ? [text] : [text, servicesText(services)];
  return [...shown, ...(verbose ? services.map(serviceDetails) : [])].join('\n\n');
}
