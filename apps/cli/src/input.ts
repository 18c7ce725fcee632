/** What a command is given as a file, or on standard input. It may hold secrets, so no failure quotes it. */
import { readFile } from 'node:fs/promises';
import { CommandFailure, EXIT } from './failure.ts';
import type { Terminal } from './terminal.ts';

/** @param file a path, or `-` for standard input. @throws CommandFailure `usage` */
async function readInput(terminal: Terminal, file: string): Promise<string> {
  if (file === '-') return terminal.input();
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(EXIT.usage, 'usage', `${file} cannot be read: ${code ?? 'it is not a file'}`, {
      cause: error,
    });
  }
}

/** @throws CommandFailure `usage` when it is not a JSON array */
export async function readList(terminal: Terminal, file: string): Promise<readonly unknown[]> {
  const text = await readInput(terminal, file);
  const list = parsed(text);
  if (Array.isArray(list)) return list as readonly unknown[];
  const what = file === '-' ? 'standard input' : file;
  throw new CommandFailure(
    EXIT.usage,
    'usage',
    `${what} does not hold a list in JSON, such as [{"name": …, "image": …}]`,
  );
}

/** @returns undefined when it is not JSON; the parser's own message would quote what is there */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** One line that is a secret: the line end is not part of it. @throws CommandFailure `usage` when it is empty */
export async function readSecret(terminal: Terminal, file: string): Promise<string> {
  const secret = (await readInput(terminal, file)).replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new CommandFailure(EXIT.usage, 'usage', `${file === '-' ? 'standard input' : file} is empty`);
}
