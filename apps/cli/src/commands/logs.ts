import { InvalidArgumentError, type Command } from 'commander';
import { isLogTime, LOG_TAIL_DEFAULT, LOG_TAIL_MAX, type LogLine } from '#kernel';
import type { Environment, Log } from '../api.ts';
import { CommandFailure, EXIT, Refusal } from '../failure.ts';
import { followLog } from '../follow-log.ts';
import { withJson, withProject, type JsonOption, type ProjectOption } from '../options.ts';
import { lastOperation, resolveEnvironment } from '../resolve.ts';
import { printable, type Terminal } from '../terminal.ts';
import type { Context } from './context.ts';

interface LogOptions extends JsonOption, ProjectOption {
  readonly tail: number;
  readonly since?: string;
  readonly follow?: boolean;
}

export function logsCommand(env: Command, context: Context): void {
  const logs = env
    .command('logs')
    .argument('<name-or-id>')
    .argument('[service]', 'may be left out where there is one')
    .description('what a service wrote; with --json, one object per line');
  withJson(withProject(logs))
    .option('--tail <n>', `at most so many of the last lines, up to ${LOG_TAIL_MAX}`, tail, LOG_TAIL_DEFAULT)
    .option('--since <time>', 'only from then on: 10m, 2h, 2026-01-31T12:00:00Z', since)
    .option('-f, --follow', 'go on with what is written from now on')
    .action((nameOrId: string, service: string | undefined, options: LogOptions) =>
      showLogs(context, nameOrId, service, options),
    );
}

async function showLogs(
  { client, terminal }: Context,
  nameOrId: string,
  service: string | undefined,
  { project, json = false, tail: lines, since: from, follow = false }: LogOptions,
): Promise<void> {
  const rest = client();
  const environment = await resolveEnvironment(rest, project, nameOrId);
  const name = service ?? onlyServiceOf(environment);
  const query = new URLSearchParams({ tail: String(lines), ...(from === undefined ? {} : { since: from }) });
  const path = `/v1/environments/${environment.id}/services/${encodeURIComponent(name)}/logs?${query.toString()}`;
  const writer = new LogWriter(terminal, json);
  try {
    if (follow) {
      const why = await followLog(rest, `${path}&follow=true`, writer);
      if (!json) terminal.err(printable(why));
      return;
    }
    const { items, truncated } = await rest.get<Log>(path);
    if (truncated) writer.onTruncated();
    for (const line of items) writer.onLine(line);
  } catch (error) {
    if (environment.state !== 'failed' || !(error instanceof Refusal) || error.code !== 'environment_not_ready')
      throw error;
    const last = await lastOperation(rest, environment);
    throw new CommandFailure(error.exit, error.code, error.message, {
      ...(last === undefined ? {} : { next: `its last words are in: surefoot op show ${last.id}` }),
      cause: error,
    });
  }
}

function onlyServiceOf({ name, id, services }: Environment): string {
  const [service, another] = services;
  if (service === undefined)
    throw new CommandFailure(EXIT.refused, 'not_found', `environment ${name} has no service`, {
      next: `see: surefoot env show ${id}`,
    });
  if (another !== undefined)
    throw new CommandFailure(EXIT.usage, 'usage', `environment ${name} has several services: name one`, {
      next: `it has ${services.map((one) => one.name).join(', ')}`,
    });
  return service.name;
}

/** Lines are results; what is to be said about them is not. */
class LogWriter {
  readonly #terminal: Terminal;
  readonly #json: boolean;

  constructor(terminal: Terminal, json: boolean) {
    this.#terminal = terminal;
    this.#json = json;
  }

  onLine(line: LogLine): void {
    this.#terminal.out(this.#json ? asciiControls(JSON.stringify(line)) : lineText(line));
  }

  onMissing(lines: number): void {
    this.#note('lines_missing', `${lines} lines are missing here: they came faster than they were read`, { lines });
  }

  onTruncated(): void {
    this.#note('truncated', 'older lines were left out: one answer holds at most 1 MiB');
  }

  #note(code: string, detail: string, more: object = {}): void {
    this.#terminal.err(this.#json ? JSON.stringify({ code, detail, ...more }) : `… ${detail}`);
  }
}

/** Nothing that an application writes may reach the terminal as a command to it; a tab is none. */
function lineText({ text, cut }: LogLine): string {
  const shown = text.split('\t').map(printable).join('\t');
  return cut === true ? `${shown} … (cut)` : shown;
}

/** JSON escapes no more than it must: of the rest, what a terminal might obey is escaped too. It stays the same JSON. */
function asciiControls(json: string): string {
  return json.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => `\\u${hex4(character.charCodeAt(index))}`).join(''),
  );
}

function hex4(unit: number): string {
  return unit.toString(16).padStart(4, '0');
}

function tail(text: string): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) > LOG_TAIL_MAX)
    throw new InvalidArgumentError(`It is a whole number up to ${LOG_TAIL_MAX}.`);
  return Number(text);
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time, or how long ago. */
function since(text: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  if (count !== undefined && unitMs !== undefined) return new Date(Date.now() - Number(count) * unitMs).toISOString();
  if (!isLogTime(text)) throw new InvalidArgumentError('It is written 90s, 10m, 2h, 1d or 2026-01-31T12:00:00Z.');
  return text;
}
