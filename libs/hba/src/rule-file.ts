/**
 * The one whole rule file of an engine (DESIGN §6).
 *
 * 1. Its first rule asks a user named after the generation, who never exists, for SCRAM: a fresh connection that is asked
 *    proves that this generation is in force.
 * 2. Its second rule is the engine's administrator, through the local socket. No rule lets anybody else in without TLS.
 * 3. Every further rule is a profile's: `samerole` (the login is a member of the role named as its database, the door role)
 *    together with the profile's group role. A login so reaches its own database and no other, from the profile's networks.
 * 4. There is no catch-all: what no line names, PostgreSQL denies. `samerole` and `all` never mean `replication`.
 * 5. The header names engine and generation and carries a digest over every other line, so that an edit shows.
 */
import { isUuid, profileRole, sentinelUser } from '#kernel';
import { cidrFault } from './cidr.ts';
import type { HbaLine } from './lines.ts';
import { parseLines, renderLine } from './lines.ts';

export interface RuleSet {
  readonly engineId: string;
  /** 0 is what an engine is made with: nobody but its administrator gets in. */
  readonly generation: number;
  readonly profiles: readonly { readonly name: string; readonly cidrs: readonly string[] }[];
}

/** SHA-256, hexadecimal; given, since pure code has none. */
export type Digest = (text: string) => string;

const METHOD = 'scram-sha-256';

function sentinelLine(generation: number): HbaLine {
  return {
    type: 'hostssl',
    databases: [{ is: 'keyword', text: 'all' }],
    users: [{ is: 'name', text: sentinelUser(generation) }],
    address: 'all',
    method: METHOD,
    options: [],
  };
}

const ADMINISTRATOR_LINE: HbaLine = {
  type: 'local',
  databases: [{ is: 'keyword', text: 'all' }],
  users: [{ is: 'name', text: 'postgres' }],
  method: METHOD,
  options: [],
};

function profileLine(profile: string, cidr: string): HbaLine {
  const fault = cidrFault(cidr);
  if (fault !== undefined) throw new TypeError(`profile ${profile}: ${cidr}: ${fault}`);
  return {
    type: 'hostssl',
    databases: [{ is: 'keyword', text: 'samerole' }],
    users: [{ is: 'group', text: profileRole(profile) }],
    address: cidr,
    method: METHOD,
    options: [],
  };
}

/** Ordered by name and network: the same rules are always the same bytes, whoever lists them. */
export function ruleLines({ generation, profiles }: RuleSet): readonly HbaLine[] {
  const sorted = [...profiles].sort((one, other) => compareText(one.name, other.name));
  return [
    sentinelLine(generation),
    ADMINISTRATOR_LINE,
    ...sorted.flatMap(({ name, cidrs }) =>
      [...new Set(cidrs)].sort(compareText).map((cidr) => profileLine(name, cidr)),
    ),
  ];
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

const NOTE =
  '# Written by Surefoot. An edit made here is never overwritten silently: the next generation is refused until it is settled.';

/** @throws TypeError for rules that cannot be written */
export function renderRuleFile(rules: RuleSet, digest: Digest): string {
  if (!isUuid(rules.engineId)) throw new TypeError('an engine id is a UUID');
  if (!Number.isSafeInteger(rules.generation) || rules.generation < 0)
    throw new TypeError('a generation is a number from 0 up');
  const head = `# surefoot rules engine=${rules.engineId} generation=${rules.generation}`;
  const body = [NOTE, ...ruleLines(rules).map(renderLine), ''].join('\n');
  return [head, `# digest=${digest(`${head}\n${body}`)}`, body].join('\n');
}

const HEAD = /^# surefoot rules engine=([0-9a-f-]{36}) generation=(0|[1-9]\d*)\n# digest=([0-9a-f]{64})\n/;

export type RuleFile =
  /** A file of ours, whole and unchanged. */
  | { readonly is: 'ours'; readonly engineId: string; readonly generation: number; readonly lines: readonly HbaLine[] }
  /** It has no header of ours, or is no longer what the header was made for. */
  | { readonly is: 'foreign'; readonly why: string };

export function parseRuleFile(text: string, digest: Digest): RuleFile {
  const found = HEAD.exec(text);
  if (found === null) return { is: 'foreign', why: 'it does not begin with a header of ours' };
  const [header, engineId = '', generation = '', stated = ''] = found;
  const head = header.slice(0, header.indexOf('\n'));
  if (digest(`${head}\n${text.slice(header.length)}`) !== stated)
    return { is: 'foreign', why: 'its content is not what its header was made for' };
  try {
    return { is: 'ours', engineId, generation: Number(generation), lines: parseLines(text) };
  } catch (error) {
    return { is: 'foreign', why: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Every reason why a text is not the file for these rules; empty when it may be installed. It is read back by the parser,
 * so a mistake of the renderer shows here and not at the server's next start.
 */
export function ruleFileFaults(text: string, rules: RuleSet, digest: Digest): readonly string[] {
  const file = parseRuleFile(text, digest);
  if (file.is === 'foreign') return [file.why];
  const faults: string[] = [];
  if (file.engineId !== rules.engineId) faults.push(`it is for engine ${file.engineId}`);
  if (file.generation !== rules.generation) faults.push(`it is generation ${file.generation}`);
  const { added, removed, reordered } = diffLines(ruleLines(rules), file.lines);
  faults.push(
    ...added.map((line) => `it has a rule too many: ${line}`),
    ...removed.map((line) => `it lacks a rule: ${line}`),
  );
  if (reordered) faults.push('its rules stand in another order, and the first match wins');
  return faults;
}

export interface RuleDifference {
  /** As written in the file. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** The same rules in another order: the first match wins, so that is a difference too. */
  readonly reordered: boolean;
}

export function diffLines(before: readonly HbaLine[], after: readonly HbaLine[]): RuleDifference {
  const old = before.map(renderLine);
  const now = after.map(renderLine);
  const added = without(now, old);
  const removed = without(old, now);
  const same = added.length === 0 && removed.length === 0;
  return { added, removed, reordered: same && old.some((line, index) => line !== now[index]) };
}

/** What is left of a list once each line of the other has taken one equal line away. */
function without(lines: readonly string[], taken: readonly string[]): readonly string[] {
  const left = [...taken];
  return lines.filter((line) => {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
