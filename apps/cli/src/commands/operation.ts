import { type Command, Option } from 'commander';
import { OPERATION_STATES } from '#protocol';
import type { Operation } from '../api.ts';
import { endedBadly } from '../failure.ts';
import { effectText, waitingText } from '../follow-operation.ts';
import { positive, waitOf, withJson, withProject, withWait, type JsonOption, type WaitOptions } from '../options.ts';
import type { Page } from '../rest-client.ts';
import { ofOperation, resolveEnvironment } from '../resolve.ts';
import { fields, printable, reasonText, show, table, timeText } from '../terminal.ts';
import { follower, type Context } from './context.ts';

const LIST_DEFAULT = 20;

export function operationCommands(parent: Command, context: Context): void {
  const op = parent.command('op').description('operations: requested changes');

  withJson(withProject(op.command('list').description('operations, newest first')))
    .option('--environment <name-or-id>', 'only of this environment')
    .addOption(new Option('--state <state>', 'only in this state').choices(OPERATION_STATES))
    .option('--limit <n>', 'at most so many', positive, LIST_DEFAULT)
    .action((options: ListOptions) => listOperations(context, options));

  withJson(op.command('show').argument('<id>').description('one operation, with its effects')).action(
    async (id: string, { json }: JsonOption) => {
      const operation = await ofOperation(() => context.client().get<Operation>(operationPath(id)));
      show(context.terminal, json === true, operation, () => operationText(operation));
    },
  );

  withJson(op.command('watch').argument('<id>').description('follow an operation to its end'))
    .option('--timeout <seconds>', 'no longer than this, then exit with 6', positive, 600)
    .action((id: string, options: JsonOption & { timeout: number }) => watchOperation(context, id, options));

  withJson(
    withWait(op.command('cancel').argument('<id>').description('stop an operation at its next effect, and undo it')),
  ).action((id: string, options: JsonOption & WaitOptions) => cancelOperation(context, id, options));
}

interface ListOptions extends JsonOption {
  readonly project: string;
  readonly environment?: string;
  readonly state?: string;
  readonly limit: number;
}

async function listOperations({ client, terminal }: Context, options: ListOptions): Promise<void> {
  const { project, environment, state, limit, json } = options;
  const rest = client();
  const environmentId =
    environment === undefined ? undefined : (await resolveEnvironment(rest, project, environment)).id;
  const operations: Operation[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Operation> = await rest.page('/v1/operations', {
      environment: environmentId,
      state,
      cursor,
      limit: String(Math.min(limit - operations.length, 200)),
    });
    operations.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null && operations.length < limit);
  show(terminal, json === true, operations, () =>
    table(
      [
        ['KIND', 'ENVIRONMENT', 'STATE', 'CREATED', 'ID', 'REASON'],
        ...operations.map(({ kind, environmentName = '-', state: now, createdAt, id, reason, waitingFor = '' }) => [
          kind,
          environmentName,
          now,
          timeText(createdAt),
          id,
          firstLine(reason?.message ?? waitingFor),
        ]),
      ],
      terminal.columns,
    ),
  );
}

/** Some messages hold last words of several lines: `op show` has them. */
function firstLine(text: string): string {
  const [first = '', ...more] = text.split('\n');
  return more.length === 0 ? first : `${first} …`;
}

async function watchOperation(
  context: Context,
  id: string,
  { json, timeout }: JsonOption & { readonly timeout: number },
): Promise<void> {
  const client = context.client();
  const ended = await ofOperation(() => follower(context, client, { timeoutSeconds: timeout }, json).follow(id));
  show(context.terminal, json === true, ended, () => operationText(ended));
  if (ended.state !== 'succeeded') throw endedBadly(ended);
}

async function cancelOperation(context: Context, id: string, options: JsonOption & WaitOptions): Promise<void> {
  const client = context.client();
  const asked = await ofOperation(() => client.post<Operation>(`${operationPath(id)}/cancel`));
  if (options.wait !== true) {
    show(context.terminal, options.json === true, asked, () => acceptedText(asked));
    return;
  }
  const ended = await follower(context, client, waitOf(options), options.json).follow(id);
  if (ended.state !== 'cancelled') throw endedBadly(ended);
  show(context.terminal, options.json === true, ended, () => `operation ${id} is cancelled`);
}

function operationPath(id: string): string {
  return `/v1/operations/${encodeURIComponent(id)}`;
}

/**
 * What is said of a request that was accepted and goes on.
 * @param subject what it is about, where a name alone may mean several
 */
export function acceptedText(operation: Operation, subject?: string): string {
  const { kind, id, state } = operation;
  return printable(
    `${kind}${subject === undefined ? '' : ` of ${subject}`} is ${state}${waitingText(operation)}; to follow it: surefoot op watch ${id}`,
  );
}

function operationText(operation: Operation): string {
  const { id, kind, state, stage, attempt, environmentId, environmentName, reason, waitingFor, caseId } = operation;
  const { createdAt, finishedAt } = operation;
  const text = fields({
    id,
    kind,
    state,
    stage: stage === state ? undefined : stage,
    attempt,
    environment: environmentId === null ? undefined : `${environmentName ?? ''} ${environmentId}`.trimStart(),
    reason: reason === null ? undefined : reasonText(reason),
    progress: operation.progress,
    'waiting for': waitingFor,
    case: caseId,
    created: timeText(createdAt),
    finished: finishedAt === null ? undefined : timeText(finishedAt),
  });
  return [text, ...operation.effects.map((effect) => `  ${printable(effectText(effect))}`)].join('\n');
}
