import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { PROCESSES, startProcesses, stopProcesses } from './app-processes.mjs';
import { startStack } from './catalog-and-broker.mjs';
import { Docker, askDaemon } from './docker-cli.mjs';
import { isOnThisNetwork, reachDaemon } from './docker-daemon.mjs';
import {
  objectsOf,
  removeContainers,
  removeObjects,
  runningContainers,
  runningContainersOf,
  stopContainers,
} from './docker-objects.mjs';
import { SetupFailure } from './failure.mjs';
import { closeHost, openHost } from './host-firewall.mjs';
import { isHome, lockHome, prepareHome, removeHome } from './home.mjs';
import { provideImages } from './images.mjs';
import { openInstallation, readInstallation } from './installation.mjs';
import {
  hasContainersWithoutDaemon,
  removePrivateDaemon,
  startPrivateDaemon,
  stopPrivateDaemon,
} from './private-daemon.mjs';
import { buildProgram, installPackages, isInstalled } from './program.mjs';
import { progress as terminal } from './progress.mjs';
import { isOwnFolder, removeSocketFolder, shortSocketFolder } from './socket-folder.mjs';

/**
 * One installation brought up, taken down and removed: for the commands, and for a test runner, which has one of its
 * own in another home beside them. All of it can be repeated, and goes on where it was interrupted.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 * @typedef {import('./progress.mjs').Progress} Progress
 * @typedef {{ home: string, progress?: Progress }} Where
 */

/** What is worth keeping between homes: finished images, the Compose program. @param {NodeJS.ProcessEnv} [env] */
export function cacheFolder(env = process.env) {
  if (env.SUREFOOT_CACHE) return resolve(env.SUREFOOT_CACHE);
  return join(env.XDG_CACHE_HOME ? resolve(env.XDG_CACHE_HOME) : join(homedir(), '.cache'), 'surefoot');
}

/**
 * Everything: packages, build, daemon, images, catalog, broker, and our own processes.
 *
 * @param {Where} where
 * @returns {Promise<Record<string, string>>} what its local.env says
 */
export function bringUp({ home, progress = terminal() }) {
  return whileLocked(home, async () => {
    if (!(await isInstalled())) {
      // npm ci begins with removing node_modules, from under whatever runs from it.
      await stopProcesses(home, progress);
      await installPackages(progress);
    }
    const build = await buildProgram(progress);
    const localEnv = await bringUpServers(home, progress);
    await startProcesses(home, build, localEnv, progress);
    return localEnv;
  });
}

/**
 * Only what our own processes need: a daemon, the images, catalog and broker.
 *
 * @param {Where} where
 * @returns {Promise<Record<string, string>>} what its local.env says
 */
export function bringUpStack({ home, progress = terminal() }) {
  return whileLocked(home, () => bringUpServers(home, progress));
}

/**
 * @param {string} home
 * @param {Progress} progress
 */
async function bringUpServers(home, progress) {
  const installation = await openInstallation(home);
  const docker = await reachDaemon(home, installation, progress);
  await provideImages(docker, installation, cacheFolder(), progress);
  const open = (await isOnThisNetwork(docker, installation))
    ? await closeHost(installation)
    : 'the Docker daemon has a network of its own';
  const localEnv = await startStack(home, installation, docker, cacheFolder(), progress, open === undefined);
  if (open !== undefined) progress.say(`  ${openHostNotice(open, localEnv.SUREFOOT_SERVICE_PORTS)}`);
  return localEnv;
}

/**
 * @param {string} why
 * @param {string | undefined} ports
 */
function openHostNotice(why, ports) {
  if (ports === undefined || ports === '') return `Services will have no published ports here: ${why}.`;
  return `This machine is not closed to services with published ports: ${why}, and SUREFOOT_SERVICE_PORTS is set.`;
}

/**
 * @template T
 * @param {string} home
 * @param {() => Promise<T>} work
 */
async function whileLocked(home, work) {
  await prepareHome(home);
  const release = await lockHome(home);
  try {
    return await work();
  } finally {
    await release();
  }
}

/**
 * Stops everything of an installation, and keeps its data.
 *
 * @param {Where} where
 */
export async function takeDown({ home, progress = terminal() }) {
  const installation = await expectInstallation(home);
  await whileLocked(home, async () => {
    await stopProcesses(home, progress);
    const docker = await daemonOf(home, installation, progress);
    if (docker !== undefined) {
      // In a daemon of our own nothing may run on, since the daemon stops too.
      const containers = installation.docker?.private
        ? await runningContainers(docker)
        : await runningContainersOf(docker, installation.id);
      if (containers.length > 0) await progress.step('stop containers', () => stopContainers(docker, containers));
    }
    if (installation.docker?.private) {
      await progress.step('stop the private Docker daemon', () => stopPrivateDaemon(home, installation));
    }
  });
}

/**
 * Removes an installation with all its data: its processes, containers, networks and volumes, a daemon of its own, and
 * the home.
 *
 * @param {Where} where
 */
export async function removeInstallation({ home, progress = terminal() }) {
  const installation = await expectInstallation(home);
  await whileLocked(home, async () => {
    await stopProcesses(home, progress);
    const docker = await daemonOf(home, installation, progress);
    if (installation.docker?.private) {
      await progress.step('remove the private Docker daemon', async () => {
        if (docker !== undefined) await removeContainers(docker, await runningContainers(docker));
        await removePrivateDaemon(home, installation);
      });
    } else if (docker !== undefined) {
      await progress.step('remove containers, networks and volumes', () => removeObjects(docker, installation.id));
    } else if (installation.docker !== undefined) {
      throw new SetupFailure(
        `the Docker daemon at ${installation.docker.host}, which holds its containers, does not answer`,
        'start that daemon, then run this again.',
      );
    }
    await openHost(installation);
    await removeSocketFolder(shortSocketFolder(installation));
    await removeHome(home);
  });
}

/**
 * @param {string} home
 * @returns {Promise<string[]>} what removeInstallation would remove, a line each
 */
export async function describeInstallation(home) {
  const installation = await expectInstallation(home);
  const parts = [`the folder ${home} (keys, records, logs)`, `processes: ${PROCESSES.join(', ')}`];
  if (installation.docker?.private) parts.push('its own Docker daemon with all containers, volumes and images in it');
  const sockets = shortSocketFolder(installation);
  if (await isOwnFolder(sockets)) parts.push(`the folder ${sockets} (sockets of its engines)`);
  const docker = await runningDaemon(installation);
  if (docker !== undefined) {
    const { containers, networks, volumes } = await objectsOf(docker, installation.id);
    const counts = `${containers.length} containers, ${networks.length} networks, ${volumes.length} volumes`;
    parts.push(`${counts} in the Docker daemon at ${docker.host}`);
  }
  return parts;
}

/** @param {string} home */
async function expectInstallation(home) {
  const installation = (await isHome(home)) ? await readInstallation(home) : undefined;
  if (installation !== undefined) return installation;
  throw new SetupFailure(
    `there is no Surefoot installation in ${home}`,
    'name its folder in SUREFOOT_HOME, or run npm start to make one.',
    { exitCode: 2 },
  );
}

/**
 * The daemon, to stop and remove things in it. One of our own that was killed is started once more for that, since it
 * alone can end the containers that run on without it.
 *
 * @param {string} home
 * @param {Installation} installation
 * @param {Progress} progress
 */
async function daemonOf(home, installation, progress) {
  const docker = await runningDaemon(installation);
  if (docker !== undefined || !installation.docker?.private) return docker;
  if (!(await hasContainersWithoutDaemon(home, installation))) return undefined;
  await startPrivateDaemon(home, installation, progress);
  return new Docker(installation.docker.host);
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
