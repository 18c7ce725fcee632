import { chmod, lstat, mkdir, readFile, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SetupFailure, errnoOf } from './failure.mjs';
import { lockFile } from './kernel-lock.mjs';

/**
 * The state folder of one installation (`SUREFOOT_HOME`): who may own it, and who may work on it at a time.
 *
 * It holds keys and passwords, and `npm run reset` removes it. So a folder is only taken as ours when it is empty or
 * carries our marker, belongs to us, and is not reached through a link.
 */

/** The file that makes a folder a Surefoot home. */
export const MARKER = 'installation.json';

const OWN_FOLDERS = ['run', 'log', 'host'];

/**
 * @param {string} repository
 * @param {NodeJS.ProcessEnv} [env]
 */
export function homeOf(repository, env = process.env) {
  const chosen = env.SUREFOOT_HOME;
  return resolve(chosen === undefined || chosen === '' ? join(repository, '.surefoot') : chosen);
}

/**
 * A command as it works when it is pasted: with the home in front, unless that is the usual one.
 *
 * @param {string} command
 * @param {string} home
 * @param {string} repository
 */
export function typed(command, home, repository) {
  if (home === homeOf(repository, {})) return command;
  const quoted = /^[\w./:@%+,-]+$/.test(home) ? home : `'${home.replaceAll("'", `'\\''`)}'`;
  return `SUREFOOT_HOME=${quoted} ${command}`;
}

/**
 * Makes the folder if it is not there, and refuses one that is not ours.
 *
 * @param {string} home
 */
export async function prepareHome(home) {
  await mkdir(home, { recursive: true, mode: 0o700 });
  await expectOwn(home);
  const names = await readdir(home);
  if (names.length > 0 && !names.includes(MARKER) && names.some((name) => !isLeftOfFirstStart(name))) {
    throw new SetupFailure(
      `${home} is not empty and is not a Surefoot home`,
      'name another folder in SUREFOOT_HOME, or leave it unset.',
    );
  }
  // mkdir's mode does nothing for a folder that was there.
  await chmod(home, 0o700);
  for (const name of OWN_FOLDERS) {
    await mkdir(join(home, name), { recursive: true, mode: 0o700 });
    await expectOwn(join(home, name));
  }
}

/** @param {string} name */
function isLeftOfFirstStart(name) {
  return OWN_FOLDERS.includes(name) || name === LOCK || name.endsWith('.tmp');
}

/**
 * @param {string} home
 * @returns {Promise<boolean>} whether there is a Surefoot home
 */
export async function isHome(home) {
  try {
    await expectOwn(home);
    await expectOwn(join(home, MARKER));
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/**
 * Reads a file of the home, strictly: ours, a plain file, closed to others.
 *
 * @param {string} path
 * @returns {Promise<string | undefined>} undefined when it is not there
 */
export async function readOwn(path) {
  try {
    await expectOwn(path);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * A link could lead what we write to a place of someone else's choosing, and a file that others can read or write is
 * no place for a key.
 *
 * @param {string} path
 */
async function expectOwn(path) {
  const found = await lstat(path);
  /** @param {string} why @param {string} next */
  const refuse = (why, next) => {
    throw new SetupFailure(`${path} ${why}`, next);
  };
  if (found.isSymbolicLink()) refuse('is a symbolic link', 'name the real folder in SUREFOOT_HOME.');
  if (!found.isDirectory() && !found.isFile()) refuse('is neither a file nor a folder', 'move it away.');
  if (found.uid !== process.geteuid?.()) {
    refuse(`belongs to user ${found.uid}`, 'run the command as that user, or name another folder in SUREFOOT_HOME.');
  }
  if (found.isFile() && (found.mode & 0o077) !== 0) {
    refuse('can be read or written by other users', `close it (chmod 600 ${path}) and consider its keys known.`);
  }
}

const LOCK = 'setup.lock';

/**
 * Takes the home's lock, so that two set-up commands never work on one home at a time.
 *
 * @param {string} home
 * @returns {Promise<() => Promise<void>>} releases it
 */
export async function lockHome(home) {
  const lock = await lockFile(join(home, LOCK), { wait: false });
  if ('release' in lock) return lock.release;
  throw new SetupFailure(
    `another set-up command is at work on ${home}${lock.holder === '' ? '' : ` (process ${lock.holder})`}`,
    'wait until it has ended, then run this one again.',
  );
}

/**
 * Removes the home. The marker goes last: a removal that is cut short leaves a home that can be removed again.
 *
 * @param {string} home
 */
export async function removeHome(home) {
  const others = (await readdir(home)).filter((name) => name !== MARKER && name !== LOCK);
  for (const name of others) await rm(join(home, name), { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
}
