import { SetupFailure } from './failure.mjs';

/**
 * `local.env`: what a program or a person needs to reach this installation, as `NAME=value` lines that a shell can
 * source as they stand. So a value never holds a character that a shell would read otherwise.
 */

/** What set-up writes, in this order. Lines that someone added are kept, after these. */
export const LOCAL_ENV_NAMES = /** @type {const} */ ([
  'SUREFOOT_URL',
  'SUREFOOT_API_KEY',
  'SUREFOOT_INSTALLATION',
  'SUREFOOT_HOST',
  'SUREFOOT_CATALOG_URL',
  'SUREFOOT_BROKER_URL',
  'DOCKER_HOST',
  'SUREFOOT_ENGINE_IMAGE',
  'SUREFOOT_ENGINE_PORT',
  'SUREFOOT_NETWORK_POOL',
]);

/** @typedef {Record<(typeof LOCAL_ENV_NAMES)[number], string>} LocalEnv */

const HEADER = '# Written by npm start. Holds the keys of this installation: keep it to yourself.';
const SAFE_NAME = /^[A-Z][A-Z0-9_]*$/;
const SAFE_VALUE = /^[\w./:@%?=+,-]*$/;

/** @param {Record<string, string>} values */
export function renderLocalEnv(values) {
  const known = new Set(/** @type {readonly string[]} */ (LOCAL_ENV_NAMES));
  const names = [...LOCAL_ENV_NAMES, ...Object.keys(values).filter((name) => !known.has(name))];
  const lines = names.map((name) => {
    const value = values[name] ?? '';
    if (!SAFE_VALUE.test(value)) {
      // The value may be a key, so only its name is told.
      throw new SetupFailure(`${name} holds a character that cannot stand in local.env`, `choose another ${name}.`);
    }
    return `${name}=${value}`;
  });
  return `${[HEADER, ...lines].join('\n')}\n`;
}

/**
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function parseLocalEnv(text) {
  /** @type {Record<string, string>} */
  const values = {};
  text.split('\n').forEach((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return;
    const at = line.indexOf('=');
    const [name, value] = [line.slice(0, at), line.slice(at + 1)];
    if (at < 0 || !SAFE_NAME.test(name) || !SAFE_VALUE.test(value)) {
      throw new SetupFailure(`line ${index + 1} of local.env cannot be read`, 'correct the line, or restore the file.');
    }
    values[name] = value;
  });
  return values;
}

/**
 * @param {Record<string, string>} localEnv
 * @param {'SUREFOOT_CATALOG_URL' | 'SUREFOOT_BROKER_URL' | 'SUREFOOT_URL'} name
 */
export function portOf(localEnv, name) {
  try {
    const { port } = new URL(localEnv[name] ?? '');
    if (port !== '') return Number(port);
  } catch {
    // Said below.
  }
  throw new SetupFailure(`${name} in local.env names no port`, 'restore the line, or start over with npm run reset.');
}
