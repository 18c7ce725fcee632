/**
 * The lines of a pg_hba.conf, as PostgreSQL reads them (src/backend/libpq/hba.c, `next_token` and `parse_hba_line`, 15 to 17;
 * manual, "The pg_hba.conf File"). Both directions are here, so that what is written can be read back and compared.
 *
 * A word loses its special meaning (`all`, `samerole` …) when it begins with a quote; the `+` of a group stays outside.
 * A line feed can be in no word, quoted or not: it ends the record. So no name can bring a rule of its own with it.
 */

export type ConnectionType = 'local' | 'host' | 'hostssl' | 'hostnossl' | 'hostgssenc' | 'hostnogssenc';

/** One database or user as written. */
export type Word =
  | { readonly is: 'keyword'; readonly text: string }
  | { readonly is: 'name'; readonly text: string }
  | { readonly is: 'group'; readonly text: string };

export interface HbaLine {
  readonly type: ConnectionType;
  readonly databases: readonly Word[];
  readonly users: readonly Word[];
  /** CIDR or keyword; a `local` line has none. */
  readonly address?: string;
  readonly method: string;
  /** `name=value`, as written. */
  readonly options: readonly string[];
}

export class HbaSyntax extends Error {
  /** @param line counted from 1 */
  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`);
    this.name = 'HbaSyntax';
  }
}

const CONNECTION_TYPES: readonly ConnectionType[] = [
  'local',
  'host',
  'hostssl',
  'hostnossl',
  'hostgssenc',
  'hostnogssenc',
];
const DATABASE_KEYWORDS = ['all', 'sameuser', 'samerole', 'samegroup', 'replication'];
const USER_KEYWORDS = ['all'];

/** Never quoted: what PostgreSQL takes for itself whatever its case, and what needs no quotes. */
const PLAIN = /^[a-z0-9_][a-z0-9_.-]*$/;
/** An address, method or option: written bare, so it may hold nothing that ends or splits a word. */
const BARE = /^[A-Za-z0-9_.:/=-]+$/;

export function renderLine(line: HbaLine): string {
  const { type, databases, users, address, method, options } = line;
  if (databases.length === 0 || users.length === 0) throw new TypeError('a rule names at least one database and user');
  if ((type === 'local') !== (address === undefined)) throw new TypeError('a rule has an address unless it is local');
  const words = [
    type,
    databases.map((word) => renderWord(word, DATABASE_KEYWORDS)).join(','),
    users.map((word) => renderWord(word, USER_KEYWORDS)).join(','),
    ...(address === undefined ? [] : [bare(address)]),
    bare(method),
    ...options.map(bare),
  ];
  return words.join(' ');
}

function renderWord(word: Word, keywords: readonly string[]): string {
  if (word.is === 'keyword') {
    if (!keywords.includes(word.text)) throw new TypeError(`${word.text} is not a keyword here`);
    return word.text;
  }
  if (word.text === '') throw new TypeError('a name has at least one character');
  // eslint-disable-next-line no-control-regex -- these end a record, or are cut off at its end
  if (/[\u0000-\u001f\u007f]/.test(word.text)) throw new TypeError('a name in a rule holds no control character');
  const reserved = [...DATABASE_KEYWORDS, ...USER_KEYWORDS].includes(word.text);
  const text = PLAIN.test(word.text) && !reserved ? word.text : `"${word.text.replaceAll('"', '""')}"`;
  return word.is === 'group' ? `+${text}` : text;
}

function bare(text: string): string {
  if (!BARE.test(text)) throw new TypeError(`${JSON.stringify(text)} cannot be written bare in a rule`);
  return text;
}

/**
 * Every rule of a file, in order; comments and empty lines are left out.
 * @throws HbaSyntax; also for what PostgreSQL would accept and we never write: includes, name lists in files, patterns,
 * a netmask in a column of its own
 */
export function parseLines(text: string): readonly HbaLine[] {
  const lines: HbaLine[] = [];
  for (const { number, record } of records(text)) {
    const fields = splitFields(number, record);
    if (fields.length > 0) lines.push(readLine(number, fields));
  }
  return lines;
}

/** A backslash at the end of a line joins the next one (since PostgreSQL 14), also in a comment. */
function* records(text: string): Generator<{ readonly number: number; readonly record: string }> {
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const number = index + 1;
    let record = (lines[index] ?? '').replace(/\r+$/, '');
    while (record.endsWith('\\')) {
      index += 1;
      if (index >= lines.length) throw new HbaSyntax(number, 'a backslash joins a line that is not there');
      record = record.slice(0, -1) + (lines[index] ?? '').replace(/\r+$/, '');
    }
    yield { number, record };
  }
}

interface RawWord {
  readonly text: string;
  /** It begins with a quote: then no keyword is meant. */
  readonly quoted: boolean;
}

/** Fields are separated by blanks, the words of a field by commas. */
function splitFields(number: number, record: string): readonly (readonly RawWord[])[] {
  const fields: RawWord[][] = [];
  let at = 0;
  const skipBlanks = (): void => {
    while (/[ \t\r]/.test(record[at] ?? '')) at += 1;
  };
  for (;;) {
    skipBlanks();
    if (at >= record.length || record[at] === '#') return fields;
    const field: RawWord[] = [];
    for (;;) {
      skipBlanks();
      const start = at;
      let text = '';
      let inQuotes = false;
      while (at < record.length) {
        const character = record[at] ?? '';
        if (!inQuotes && /[ \t\r,#]/.test(character)) break;
        if (character !== '"') text += character;
        else if (inQuotes && record[at + 1] === '"') {
          text += '"';
          at += 1;
        } else inQuotes = !inQuotes;
        at += 1;
      }
      if (inQuotes) throw new HbaSyntax(number, 'a quote is not closed');
      if (at === start) throw new HbaSyntax(number, 'a word is missing at a comma');
      field.push({ text, quoted: record[start] === '"' });
      if (record[at] !== ',') break;
      at += 1;
    }
    fields.push(field);
  }
}

function readLine(number: number, fields: readonly (readonly RawWord[])[]): HbaLine {
  const single = (index: number, what: string): RawWord => {
    const [word, more] = fields[index] ?? [];
    if (word === undefined) throw new HbaSyntax(number, `${what} is missing`);
    if (more !== undefined) throw new HbaSyntax(number, `only one ${what} is allowed`);
    return word;
  };
  const several = (index: number, what: string, keywords: readonly string[]): readonly Word[] => {
    const words = fields[index];
    if (words === undefined) throw new HbaSyntax(number, `${what} is missing`);
    return words.map((word) => readWord(number, word, keywords));
  };
  const written = single(0, 'connection type').text;
  const type = CONNECTION_TYPES.find((known) => known === written);
  if (type === undefined) throw new HbaSyntax(number, `${JSON.stringify(written)} is not a connection type`);
  const databases = several(1, 'database', DATABASE_KEYWORDS);
  const users = several(2, 'user', USER_KEYWORDS);
  const address = type === 'local' ? {} : { address: single(3, 'address').text };
  const rest = type === 'local' ? 3 : 4;
  const method = single(rest, 'method').text;
  if (!/^[a-z][a-z0-9-]*$/.test(method)) throw new HbaSyntax(number, `${JSON.stringify(method)} is not a method`);
  const options = fields.slice(rest + 1).map((_field, index) => single(rest + 1 + index, 'option').text);
  const bad = options.find((option) => !/^[a-z_]+=./.test(option));
  if (bad !== undefined) throw new HbaSyntax(number, `${JSON.stringify(bad)} is not an option of the form name=value`);
  return { type, databases, users, ...address, method, options };
}

function readWord(number: number, word: RawWord, keywords: readonly string[]): Word {
  const { text, quoted } = word;
  if (text === '') throw new HbaSyntax(number, 'a name is empty');
  if (quoted) return { is: 'name', text };
  if (keywords.includes(text)) return { is: 'keyword', text };
  if (text.startsWith('@') || text.startsWith('/'))
    throw new HbaSyntax(number, `${JSON.stringify(text)} refers to a file or a pattern, which no file of ours does`);
  if (text === '+') throw new HbaSyntax(number, 'a group name is empty');
  return text.startsWith('+') ? { is: 'group', text: text.slice(1) } : { is: 'name', text };
}
