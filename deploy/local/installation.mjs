import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { chooseBlock, takenRanges } from './address-block.mjs';
import { replaceFile } from './durable-file.mjs';
import { SetupFailure } from './failure.mjs';
import { MARKER, readOwn } from './home.mjs';
import { parseLocalEnv, renderLocalEnv } from './local-env.mjs';

/**
 * What set-up has decided for one installation and must keep: `installation.json` in the home. It is written before
 * anything is made that carries the installation's id, and it holds enough to find and remove all of that, even when
 * `local.env` is lost.
 */

/**
 * @typedef {object} Installation
 * @property {1} version
 * @property {string} id a UUID
 * @property {string} block the addresses of its containers
 * @property {{ host: string, private: boolean }} [docker] the daemon that it lives in
 * @property {string} [catalogImage]
 * @property {string} [brokerImage]
 * @property {string} [engineImage]
 * @property {string} [superuserVerifier] of a catalog superuser's password that nobody knows
 * @property {string} [brokerPasswordHash]
 * @property {string} [stackDigest] of what catalog and broker were started from
 * @property {{ container: string, verifier: string }} [catalogRole] as last set, and in which container
 */

/**
 * @param {string} home
 * @returns {Promise<Installation | undefined>}
 */
export async function readInstallation(home) {
  const path = join(home, MARKER);
  const text = await readOwn(path);
  if (text === undefined) return undefined;
  /** @type {any} */
  const found = JSON.parse(text);
  if (found?.version !== 1 || typeof found.id !== 'string' || typeof found.block !== 'string') {
    throw new SetupFailure(
      `${path} was written by a newer program, or is damaged`,
      'use the newer program, or restore the file from a copy.',
    );
  }
  return found;
}

/**
 * @param {string} home
 * @param {Installation} installation
 */
export async function writeInstallation(home, installation) {
  await replaceFile(join(home, MARKER), `${JSON.stringify(installation, null, 2)}\n`);
}

/**
 * @param {string} home
 * @returns {Promise<Installation>}
 */
export async function openInstallation(home) {
  const found = await readInstallation(home);
  if (found !== undefined) return found;
  const id = randomUUID();
  /** @type {Installation} */
  const installation = { version: 1, id, block: chooseBlock(id, await takenRanges()) };
  await writeInstallation(home, installation);
  return installation;
}

/**
 * @param {string} home
 * @returns {Promise<Record<string, string>>} empty when it was not written yet
 */
export async function readLocalEnv(home) {
  return parseLocalEnv((await readOwn(join(home, 'local.env'))) ?? '');
}

/**
 * @param {string} home
 * @param {Record<string, string>} values
 */
export async function writeLocalEnv(home, values) {
  await replaceFile(join(home, 'local.env'), renderLocalEnv(values));
}

/** Names of things on the machine that hold few characters, such as interfaces. @param {Installation} installation */
export function shortId({ id }) {
  return id.slice(0, 8);
}
