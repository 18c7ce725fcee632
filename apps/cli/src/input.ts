/** What a command is given as a file, or on standard input. It may hold secrets, so no failure quotes it. */
import { readFile } from 'node:fs/promises';
import { CommandFailure, EXIT } from './failure.ts';
import { jsonFault } from './json-fault.ts';
import type { Terminal } from './terminal.ts';

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'it is closed to you',
};

/** @param file a path, or `-` for standard input. @throws CommandFailure `usage` */
async function readInput(terminal: Terminal, file: string): Promise<string> {
  if (file === '-') return terminal.input();
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = (code === undefined ? undefined : UNREADABLE[code]) ?? code ?? 'it is not a file';
    throw new CommandFailure(EXIT.usage, 'usage', `${file} cannot be read: ${why}`, { cause: error });
  }
}

const LIST = '[{"name": "api", "image": "team/api:1"}]';

/** @throws CommandFailure `usage` when it is not a JSON array */
export async function readList(terminal: Terminal, file: string): Promise<readonly unknown[]> {
  const text = (await readInput(terminal, file)).replace(/^\uFEFF/, '');
  const what = file === '-' ? 'standard input' : file;
  const list = parsed(text, what);
  if (Array.isArray(list)) return list as readonly unknown[];
  const within = (list as { readonly services?: unknown } | null)?.services;
  throw new CommandFailure(
    EXIT.usage,
    'usage',
    Array.isArray(within)
      ? `${what} holds an object with a list "services": here the list itself is needed, ${LIST}`
      : `${what} does not hold a list in JSON, such as ${LIST}`,
    Array.isArray(within)
      ? { next: `jq .services ${file === '-' ? '' : `${file} `}| surefoot env create … --services -` }
      : {},
  );
}

/** The parser's own message would quote what is there. */
function parsed(text: string, what: string): unknown {
  if (text.trim() === '') throw new CommandFailure(EXIT.usage, 'usage', `${what} is empty: a list is needed, ${LIST}`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const { line, column } = jsonFault(text);
    throw new CommandFailure(EXIT.usage, 'usage', `${what} is not JSON: look at line ${line}, column ${column}`);
  }
}

/** One line that is a secret: the line end is not part of it. @throws CommandFailure `usage` when it is empty */
export async function readSecret(terminal: Terminal, file: string): Promise<string> {
  const secret = (await readInput(terminal, file)).replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new CommandFailure(EXIT.usage, 'usage', `${file === '-' ? 'standard input' : file} is empty`);
}
