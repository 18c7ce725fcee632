import { lstat, rm, rmdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { errnoOf } from './failure.mjs';
import { shortId } from './installation.mjs';

/**
 * Where the worker puts the sockets of engines when the home's path is too long for them (`socketFolder` of
 * libs/settings): outside the home, so that removing the home does not remove it.
 *
 * @param {import('./installation.mjs').Installation} installation
 * @param {string} [base] told by tests
 */
export function shortSocketFolder(installation, base = shortBase()) {
  return join(base, shortId(installation));
}

function shortBase() {
  return process.geteuid?.() === 0 ? '/var/lib/surefoot' : join(userInfo().homedir, '.local', 'state', 'surefoot');
}

/**
 * @param {string} folder
 * @returns {Promise<boolean>} whether it is there, and is a folder of ours
 */
export async function isOwnFolder(folder) {
  try {
    const found = await lstat(folder);
    return found.isDirectory() && found.uid === process.geteuid?.();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** @param {string} folder */
export async function removeSocketFolder(folder) {
  if (!(await isOwnFolder(folder))) return;
  await rm(folder, { recursive: true, force: true });
  // Other installations have theirs beside it; the last one takes the folder around them along.
  await rmdir(dirname(folder)).catch(() => undefined);
}
