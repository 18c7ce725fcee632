import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { Docker, askDaemon } from './docker-cli.mjs';
import { reachDaemon } from './docker-daemon.mjs';
import { SetupFailure } from './failure.mjs';
import { isHome, lockHome, prepareHome } from './home.mjs';
import { provideImages } from './images.mjs';
import { openInstallation, readInstallation } from './installation.mjs';
import { stopPrivateDaemon } from './private-daemon.mjs';
import { progress as terminal } from './progress.mjs';
import { startStack } from './catalog-and-broker.mjs';

/**
 * The parts of one installation brought up, taken down and removed, for the commands and for a test runner alike.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 * @typedef {import('./progress.mjs').Progress} Progress
 */

/** What is worth keeping between homes: finished images, the Compose program. @param {NodeJS.ProcessEnv} [env] */
export function cacheFolder(env = process.env) {
  if (env.SUREFOOT_CACHE) return resolve(env.SUREFOOT_CACHE);
  return join(env.XDG_CACHE_HOME ? resolve(env.XDG_CACHE_HOME) : join(homedir(), '.cache'), 'surefoot');
}

/**
 * A daemon, the images, catalog and broker: everything that our own programs need to run.
 *
 * @param {object} options
 * @param {string} options.home
 * @param {Progress} [options.progress]
 * @returns {Promise<Record<string, string>>} what its local.env says
 */
export async function bringUpStack({ home, progress = terminal() }) {
  await prepareHome(home);
  const release = await lockHome(home);
  try {
    const installation = await openInstallation(home);
    const docker = await reachDaemon(home, installation, progress);
    await provideImages(docker, installation, cacheFolder(), progress);
    return await startStack(home, installation, docker, cacheFolder(), progress);
  } finally {
    await release();
  }
}

/** Longer than a container's own time to stop: the daemon kills what has not stopped by then. */
const STOP_SECONDS = 60;

/**
 * Stops everything of an installation, and keeps its data.
 *
 * @param {object} options
 * @param {string} options.home
 * @param {Progress} [options.progress]
 */
export async function takeDown({ home, progress = terminal() }) {
  const installation = await expectInstallation(home);
  const release = await lockHome(home);
  try {
    await stopContainers(installation, progress);
    if (installation.docker?.private) {
      await progress.step('private Docker daemon', () => stopPrivateDaemon(home, installation));
    }
  } finally {
    await release();
  }
}

/** @param {string} home */
export async function expectInstallation(home) {
  const installation = (await isHome(home)) ? await readInstallation(home) : undefined;
  if (installation !== undefined) return installation;
  throw new SetupFailure(`${home} is not a Surefoot home`, 'name the right folder in SUREFOOT_HOME.', { exitCode: 2 });
}

/**
 * @param {Installation} installation
 * @param {Progress} progress
 */
async function stopContainers(installation, progress) {
  const docker = await runningDaemon(installation);
  if (docker === undefined) return;
  // Environments first: what serves them needs the catalog until it has stopped. In a daemon of our own nothing may
  // run on, since the daemon stops too.
  const ours = ['--filter', `label=surefoot.installation=${installation.id}`];
  const running = await docker.ids(['container', 'ls', '--quiet', ...(installation.docker?.private ? [] : ours)]);
  if (running.length === 0) return;
  await progress.step('containers', () =>
    docker.run(['stop', '--time', String(STOP_SECONDS), ...running], { deadlineMs: (STOP_SECONDS + 60) * 1000 }),
  );
}

/**
 * @param {Installation} installation
 * @returns {Promise<Docker | undefined>}
 */
async function runningDaemon(installation) {
  const host = installation.docker?.host;
  if (host === undefined || (await askDaemon(host)) !== 'answers') return undefined;
  return new Docker(host);
}
