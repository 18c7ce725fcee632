/**
 * Where a text ends to be JSON (RFC 8259). The parser of the language tells that by quoting the text around it, and only at
 * times where it is; this text may hold secrets.
 */

const SPACE = /[ \t\n\r]*/y;
// eslint-disable-next-line no-control-regex -- these are what a string must not hold as they are
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** Deeper than anything that is asked for. */
const DEPTH_MAX = 100;

interface Place {
  readonly line: number;
  readonly column: number;
}

/** @returns the first place that JSON does not allow; the end of the text when something is missing there */
export function jsonFault(text: string): Place {
  const scan = new Scan(text);
  if (scan.value(0)) scan.space();
  const lines = text.slice(0, scan.at).split('\n');
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}

class Scan {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  space(): void {
    this.#take(SPACE);
  }

  /** @returns false at the fault */
  value(depth: number): boolean {
    this.space();
    if (depth > DEPTH_MAX) return false;
    if (this.#is('{')) return this.#list('}', depth, () => this.#take(STRING) && this.#is(':'));
    if (this.#is('[')) return this.#list(']', depth, () => true);
    return this.#take(STRING) || this.#take(PLAIN);
  }

  #list(end: string, depth: number, name: () => boolean): boolean {
    if (this.#is(end)) return true;
    do {
      this.space();
      if (!name() || !this.value(depth + 1)) return false;
    } while (this.#is(','));
    return this.#is(end);
  }

  #is(letter: string): boolean {
    this.space();
    if (this.#text[this.at] !== letter) return false;
    this.at += 1;
    return true;
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}
