/** Where a command reads and writes. Results go to standard output, everything else to standard error. */
import { createInterface } from 'node:readline/promises';
import { text as readText } from 'node:stream/consumers';
import type { Reason } from '#kernel';
import type { CommandFailure } from './failure.ts';

export interface Terminal {
  /** Letters in a line of standard output; undefined where it is no terminal. */
  readonly columns: number | undefined;
  readonly stdinIsTerminal: boolean;
  out(text: string): void;
  err(text: string): void;
  /** A line for whoever watches, gone with the next one; with nothing in it, the last one goes. */
  status(text: string): void;
  /** Standard input to its end. */
  input(): Promise<string>;
  /** @returns whether the answer was yes */
  confirm(question: string): Promise<boolean>;
}

/** To its beginning, and erased (ECMA-48, CR and EL). */
const ERASE_LINE = '\r\x1b[2K';

/** Some terminals do not say it, and are told as having none. */
const COLUMNS = 80;

function columnsOf({ columns }: NodeJS.WriteStream): number {
  return columns > 0 ? columns : COLUMNS;
}

export function processTerminal(): Terminal {
  // `surefoot env list | head` closes our output: that is not worth a stack trace.
  process.stdout.on('error', () => process.exit());
  let status = '';
  const wipe = (): void => {
    if (status !== '') process.stderr.write(ERASE_LINE);
    status = '';
  };
  return {
    columns: process.stdout.isTTY ? columnsOf(process.stdout) : undefined,
    stdinIsTerminal: process.stdin.isTTY,
    out(text) {
      wipe();
      process.stdout.write(`${text}\n`);
    },
    err(text) {
      wipe();
      process.stderr.write(`${text}\n`);
    },
    status(text) {
      if (!process.stderr.isTTY || text === status) return;
      wipe();
      // A line that wraps cannot be erased as one.
      status = text.slice(0, columnsOf(process.stderr) - 1);
      process.stderr.write(status);
    },
    input: () => readText(process.stdin),
    async confirm(question) {
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
      } finally {
        lines.close();
      }
    },
  };
}

/** A result: text for people, or JSON alone for programs. */
export function show(terminal: Terminal, json: boolean, value: unknown, text: () => string): void {
  terminal.out(json ? JSON.stringify(value, null, 2) : text());
}

export function showFailure(terminal: Terminal, json: boolean, failure: CommandFailure): void {
  const { exit, code, message, errors, nameOf, next, operation } = failure;
  if (json) {
    terminal.err(JSON.stringify({ code, detail: message, errors, next, operation, exitCode: exit }));
    return;
  }
  terminal.err(printable(`surefoot: ${message}${message.endsWith(`(${code})`) ? '' : ` [${code}]`}`));
  for (const fault of errors)
    terminal.err(printable(`  ${fault.field === '' ? 'body' : nameOf(fault.field)}: ${fault.message}`));
  if (next !== undefined) terminal.err(printable(`  ${next}`));
}

/** A name may hold letters that turn the terminal's direction, or nothing visible: such are shown by their number. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    character === '\n' ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/**
 * @param rows the first is the heading
 * @param columns lines are cut to so many letters
 */
export function table(rows: readonly (readonly string[])[], columns?: number): string {
  const shown = rows.map((row) => row.map(printable));
  const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => width(row[column] ?? ''))));
  return shown
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => (columns === undefined ? line : cut(line, columns)))
    .join('\n');
}

const LETTERS = new Intl.Segmenter();

function cut(line: string, columns: number): string {
  if (width(line) <= columns) return line;
  const letters = Array.from(LETTERS.segment(line), ({ segment }) => segment);
  return `${letters.slice(0, Math.max(columns - 1, 0)).join('')}…`;
}

/** Letters as people count them. */
function width(text: string): number {
  return Array.from(LETTERS.segment(text)).length;
}

/** As people read it: to the second. */
export function timeText(at: string): string {
  return at.replace(/\.\d+(?=Z$)/, '');
}

/** The code stands once, also where the message ends with it. */
export function reasonText({ code, message }: Reason): string {
  return message.includes(`(${code})`) ? message : `${message} (${code})`;
}

/** `name  value` lines; what is undefined is left out. */
export function fields(values: Readonly<Record<string, string | number | undefined>>): string {
  return table(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );
}
