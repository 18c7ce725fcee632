/**
 * Files that an engine reads through its mounted folder: readable by its group, whole at every moment, and durable. (What
 * only this host's processes read is written by libs/receipts, for the owner alone.)
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** Ours to write, the engine's group to read. */
const CONF_FILE_MODE = 0o640;

/** Makes a folder, or gives it the mode it must have. @throws when there is something else, or somebody else's folder */
export function ensureFolder(path: string, mode: number): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new TypeError(`${path} is not a folder`);
  const user = process.geteuid?.();
  if (user !== undefined && found.uid !== user) throw new TypeError(`${path} belongs to user ${found.uid}`);
  // The folder's group is what the container runs with; one that was inherited from a parent may be another's.
  const group = process.getegid?.();
  if (group !== undefined && found.gid !== group) chownSync(path, found.uid, group);
  // The mode of mkdir is cut by the umask.
  if ((found.mode & 0o7777) !== mode) chmodSync(path, mode);
}

/** @returns undefined when there is no such file */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Nothing was replaced: the file that was to be replaced is as it was. */
export class DiskFull extends Error {
  constructor(path: string, cause: unknown) {
    super(`${path} could not be written: ${cause instanceof Error ? cause.message : 'no space'}`, { cause });
    this.name = 'DiskFull';
  }
}

/** Puts a file in place unless it has this content already. @returns whether it had to be written */
export function placeConfFile(path: string, content: string): boolean {
  if (readIfThere(path) === content) return false;
  renameSync(writeBeside(path, content), path);
  syncFolder(dirname(path));
  return true;
}

/** A durable temporary file in the same folder, with the owner and mode of what it will replace; read back and compared. */
function writeBeside(path: string, content: string): string {
  const folder = dirname(path);
  const temporary = join(folder, `.writing-${randomUUID()}`);
  const file = openNew(path, temporary);
  try {
    const { gid } = statSync(folder);
    if (fstatSync(file).gid !== gid) fchownSync(file, -1, gid);
    fchmodSync(file, CONF_FILE_MODE);
    const bytes = Buffer.from(content);
    let written = 0;
    while (written < bytes.length) written += writeSync(file, bytes, written);
    fsyncSync(file);
    if (!readFileSync(temporary).equals(bytes)) throw new Error(`${temporary} does not hold what was written to it`);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw isDiskFull(error) ? new DiskFull(path, error) : error;
  } finally {
    closeSync(file);
  }
  return temporary;
}

function openNew(path: string, temporary: string): number {
  try {
    return openSync(temporary, 'wx', CONF_FILE_MODE);
  } catch (error) {
    throw isDiskFull(error) ? new DiskFull(path, error) : error;
  }
}

/** No space, or no quota. */
function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

export type Replacement =
  | { readonly did: 'replaced' }
  /** Somebody wrote to the file between the look and the replacement: their content is in place again. */
  | { readonly did: 'put back'; readonly found: string };

/**
 * Compare and swap: the old file is kept under a second name until it is certain that what was replaced is what was
 * compared. An editor that had the old file open may still write to it after the comparison.
 * @param before content that the file had when it was compared
 * @throws DiskFull before anything is replaced
 */
export function replaceConfFile(path: string, before: string, after: string): Replacement {
  const folder = dirname(path);
  const temporary = writeBeside(path, after);
  const aside = join(folder, `.aside-${randomUUID()}`);
  try {
    linkSync(path, aside);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw isDiskFull(error) ? new DiskFull(path, error) : error;
  }
  renameSync(temporary, path);
  syncFolder(folder);
  const found = readFileSync(aside, 'utf8');
  if (found === before) {
    rmSync(aside);
    return { did: 'replaced' };
  }
  renameSync(aside, path);
  syncFolder(folder);
  return { did: 'put back', found };
}

function syncFolder(folder: string): void {
  const directory = openSync(folder, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
