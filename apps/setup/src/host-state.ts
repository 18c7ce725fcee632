/** What this host has of its own: folders, the sealing key, the certificate authority, the age record. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { publishFile, readEpoch, writeEpoch } from '#receipts';
import { checkPrivateFolder, readSealingKey, type HomePaths } from '#settings';

export type Say = (line: string) => void;

/** @throws UnsafeState when one is a link, somebody else's, or open to others */
export function makeFolders(paths: HomePaths): void {
  const { run, log, host, receipts, witnesses, fences, engines, caFolder } = paths;
  for (const folder of [run, log, host, receipts, witnesses, fences, engines, caFolder]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    checkPrivateFolder(folder);
  }
}

/** Never replaced: what was sealed with it would be lost. */
export function makeSealingKey(path: string, say: Say): void {
  if (publishOnce(path, `${randomBytes(32).toString('base64')}\n`)) say(`made the key for credentials, ${path}`);
  readSealingKey(path);
}

/** @returns false when the file was there */
export function publishOnce(path: string, content: string): boolean {
  try {
    publishFile(path, content);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** The host has worked for another catalog than this one. */
export class AgeContradiction extends Error {
  constructor(path: string) {
    super(
      `${path} has seen claims, but the catalog has no such host: it was lost or replaced. ` +
        'Restore the catalog, or set up anew in another SUREFOOT_HOME',
    );
    this.name = 'AgeContradiction';
  }
}

/**
 * The identity of a host that the catalog does not know yet, durable here before it is committed there: a crash in between
 * leaves a record that has seen no claim, and that the next run takes up. A host that the catalog knows gets no record from
 * here: a missing one is evidence, for the worker to judge.
 */
export function prepareIdentity(path: string): string {
  const found = readEpoch(path);
  if (found !== undefined) {
    if (found.claimNumber > 0) throw new AgeContradiction(path);
    return found.identity;
  }
  const identity = randomUUID();
  writeEpoch(path, { identity, claimNumber: 0 });
  return identity;
}
