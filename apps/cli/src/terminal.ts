/** Where a command reads and writes. Results go to standard output, everything else to standard error. */
import { createInterface } from 'node:readline/promises';
import type { CommandFailure } from './failure.ts';

export interface Terminal {
  readonly stderrIsTerminal: boolean;
  readonly stdinIsTerminal: boolean;
  out(text: string): void;
  err(text: string): void;
  /** @returns whether the answer was yes */
  confirm(question: string): Promise<boolean>;
}

export function processTerminal(): Terminal {
  // `surefoot env list | head` closes our output: that is not worth a stack trace.
  process.stdout.on('error', () => process.exit());
  return {
    stderrIsTerminal: process.stderr.isTTY,
    stdinIsTerminal: process.stdin.isTTY,
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
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
  const { exit, code, message, errors, next, operation } = failure;
  if (json) {
    terminal.err(JSON.stringify({ code, detail: message, errors, next, operation, exitCode: exit }));
    return;
  }
  terminal.err(printable(`surefoot: ${message} [${code}]`));
  for (const fault of errors)
    terminal.err(printable(`  ${fault.field === '' ? 'body' : fault.field}: ${fault.message}`));
  if (next !== undefined) terminal.err(printable(`  ${next}`));
}

/** A name may hold letters that turn the terminal's direction, or nothing visible: such are shown by their number. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    character === '\n' ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** @param rows the first is the heading */
export function table(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(printable));
  const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => width(row[column] ?? ''))));
  return shown
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const LETTERS = new Intl.Segmenter();

/** Letters as people count them. */
function width(text: string): number {
  return Array.from(LETTERS.segment(text)).length;
}

/** `name  value` lines; what is undefined is left out. */
export function fields(values: Readonly<Record<string, string | number | undefined>>): string {
  return table(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );
}
