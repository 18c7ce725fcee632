/**
 * Durable files. Calls are synchronous on purpose: each is one step of the protocol, nothing of this process may happen in
 * between, and together they take about a millisecond.
 *
 * After a failed fsync nothing is known about the file (Linux drops the dirty pages and reports the error once), so no call
 * is ever repeated here: the caller treats the record as not written and stops.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readdirSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const FILE_MODE = 0o600;
/** Begins with a dot and does not end in `.json`: no reader takes it for a record. */
const TEMPORARY_PREFIX = '.writing-';

/**
 * Publishes a file under a name that must be new: temporary file, write, fsync, `link` (exclusive and atomic, so a torn or
 * overwritten file cannot exist), fsync of the directory. When this returns, the file survives a power cut.
 * @throws EEXIST when the name is taken; nothing was changed then
 */
export function publishFile(path: string, content: string): void {
  const folder = dirname(path);
  const temporary = writeTemporary(folder, content, FILE_MODE);
  try {
    linkSync(temporary, path);
  } finally {
    unlinkSync(temporary);
  }
  syncFolder(folder);
}

/** Replaces a file whole: readers see the old content or the new one, also after a power cut. */
export function replaceFile(path: string, content: string, mode: number = FILE_MODE): void {
  const folder = dirname(path);
  renameSync(writeTemporary(folder, content, mode), path);
  syncFolder(folder);
}

/** Removes a file for good; one that is already gone is fine, since only the absence is wanted. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  syncFolder(dirname(path));
}

/** What a killed process left of files that were never published. */
export function removeTemporaries(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith(TEMPORARY_PREFIX)) unlinkSync(join(folder, name));
}

export function isTemporary(path: string): boolean {
  return basename(path).startsWith(TEMPORARY_PREFIX);
}

function writeTemporary(folder: string, content: string, mode: number): string {
  const path = join(folder, TEMPORARY_PREFIX + randomUUID());
  const file = openSync(path, 'wx', mode);
  try {
    const bytes = Buffer.from(content);
    let written = 0;
    while (written < bytes.length) written += writeSync(file, bytes, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return path;
}

function syncFolder(folder: string): void {
  const directory = openSync(folder, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
