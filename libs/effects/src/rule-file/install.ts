/** The step of a publication that changes the file: compared with what is expected there, the old content kept beside it. */
import { DiskFull, placeConfFile, replaceConfFile, sha256 } from '#engines';
import type { RuleSet } from '#hba';
import { diffLines, parseLines, parseRuleFile, ruleLines } from '#hba';
import { sentinelUser } from '#kernel';
import type { ActResult } from '../contract.ts';
import { refused } from '../contract.ts';

export interface Publication {
  readonly rules: RuleSet;
  /** Content of the file to be. */
  readonly after: string;
  /** Digest of the file that is expected to be there. */
  readonly before: string;
}

export function previousPath(path: string): string {
  return `${path}.previous`;
}

/** @returns a refusal when the file is not what it is expected to be, or the disk is full; then it is as it was found */
export function install(path: string, found: string, { rules, after, before }: Publication): ActResult | undefined {
  if (sha256(found) !== before) return foreign(path, found, rules);
  try {
    placeConfFile(previousPath(path), found);
    const replacement = replaceConfFile(path, found, after);
    return replacement.did === 'put back' ? foreign(path, replacement.found, rules) : undefined;
  } catch (error) {
    if (error instanceof DiskFull) return refused('disk_full', error.message);
    throw error;
  }
}

function foreign(path: string, found: string, rules: RuleSet): ActResult {
  return refused('foreign_object', `${path} is not the file that was written last: ${describe(found, rules)}`);
}

function describe(found: string, rules: RuleSet): string {
  const file = parseRuleFile(found, sha256);
  if (file.is === 'ours') return `it is generation ${file.generation} of engine ${file.engineId}`;
  try {
    const { added } = diffLines(ruleLines(rules), parseLines(found));
    // The sentinel of whichever generation was edited is ours too.
    const strange = added.filter((line) => !line.includes(` ${sentinelUser(0).slice(0, -1)}`));
    return strange.length === 0 ? file.why : `${file.why}; not ours: ${strange.join('; ')}`;
  } catch {
    return file.why;
  }
}
