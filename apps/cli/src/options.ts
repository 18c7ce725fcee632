/** Options that several commands take, read strictly. */
import { InvalidArgumentError, type Command } from 'commander';
import type { Wait } from './follow-operation.ts';

export interface JsonOption {
  readonly json?: boolean;
}

export interface ProjectOption {
  readonly project: string;
}

export interface WaitOptions {
  readonly wait?: boolean;
  readonly timeout: number;
}

const TIMEOUT_SECONDS = 600;
const PROJECT = 'default';

export function withJson(command: Command): Command {
  return command.option('--json', 'JSON on standard output, and nothing else there');
}

export function withProject(command: Command): Command {
  return command.option('--project <name>', 'the project it is in', PROJECT);
}

export function withWait(command: Command): Command {
  return command
    .option('--wait', 'wait until it is done')
    .option('--timeout <seconds>', 'wait no longer than this, then exit with 6', positive, TIMEOUT_SECONDS);
}

export function waitOf({ timeout }: { readonly timeout: number }): Wait {
  return { timeoutSeconds: timeout };
}

export function positive(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It is a whole number above 0.');
  return Number(text);
}

export function repeated(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

/** `name=value`, any number of times. */
export function label(text: string, before: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [name, value] = pair(text, 'name=value');
  return { ...before, [name]: value };
}

export interface NamedImage {
  readonly name: string;
  readonly image: string;
}

/** `name=image`, any number of times. */
export function service(text: string, before: readonly NamedImage[]): readonly NamedImage[] {
  const [name, image] = pair(text, 'name=image');
  return [...before, { name, image }];
}

function pair(text: string, written: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError(`It is written ${written}.`);
  return [text.slice(0, at), text.slice(at + 1)];
}
