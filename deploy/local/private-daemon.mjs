import { spawn } from 'node:child_process';
import { mkdir, open, readFile, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { layOut } from './address-block.mjs';
import { tryCommand } from './command.mjs';
import { askDaemon, socketOf } from './docker-cli.mjs';
import { replaceFile } from './durable-file.mjs';
import { SetupFailure } from './failure.mjs';
import { closeHost } from './host-firewall.mjs';
import { shortId } from './installation.mjs';
import { ensureBridge, removeNetworkTraces, withForeignRulesKept } from './machine-network.mjs';
import { argumentsOf, endProcess, identify, waitUntil } from './running-process.mjs';

/**
 * A Docker daemon of this installation's own: its data under the home, its socket and run-time state under /run (a
 * socket's path may have 107 bytes, a home's path more), its bridge and addresses from the installation's block. The
 * machine's own daemon and its settings in /etc/docker are neither used nor touched.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 */

/** It reads its containers back first: that took 16 s with a hundred services on two busy cores. */
const READY_MS = 180_000;
const STOP_MS = 90_000;

/** @param {Installation} installation */
export function privateDaemonHost(installation) {
  return `unix://${runFolder(installation)}/docker.sock`;
}

/** @param {Installation} installation */
function runFolder(installation) {
  return `/run/surefoot/${shortId(installation)}`;
}

/** @param {Installation} installation */
function bridgeName(installation) {
  // An interface's name has at most 15 characters.
  return `sf-${shortId(installation)}`;
}

/** @param {string} home @param {Installation} installation */
function paths(home, installation) {
  const run = runFolder(installation);
  return {
    run,
    settings: join(home, 'docker-daemon.json'),
    log: join(home, 'log', 'docker-daemon.log'),
    data: join(home, 'docker'),
    execRoot: join(run, 'exec'),
    pidFile: join(run, 'dockerd.pid'),
    containerdPidFile: join(run, 'exec', 'containerd', 'containerd.pid'),
  };
}

/**
 * Starts the daemon unless it runs. Containers that run on without a daemon (after it was killed) are taken over by
 * the new one.
 *
 * @param {string} home
 * @param {Installation} installation
 * @param {import('./progress.mjs').Progress} progress
 */
export async function startPrivateDaemon(home, installation, progress) {
  const host = privateDaemonHost(installation);
  if ((await askDaemon(host)) === 'answers') return;
  await progress.step(`start a private Docker daemon (data in ${join(home, 'docker')})`, async () => {
    const at = paths(home, installation);
    await mkdir(at.run, { recursive: true, mode: 0o711 });
    await mkdir(at.data, { recursive: true, mode: 0o711 });
    const running = await findDaemon(home, installation);
    if (running !== undefined) {
      // It may still be starting, or reading its containers back.
      if (await waitUntil(async () => (await askDaemon(host)) === 'answers', READY_MS)) return;
      throw new SetupFailure(
        `the private Docker daemon (process ${running.pid}) runs but does not answer`,
        `see ${at.log}; ending that process (kill ${running.pid}) and running this again starts it anew.`,
      );
    }
    await removeStalePidFiles(at);
    await replaceFile(at.settings, settings(at, installation));
    await ensureBridge(bridgeName(installation), installation.block);
    // Before its containers come back with it. Whether it could be done is asked once more, and told, when it runs.
    await closeHost(installation);
    await withForeignRulesKept(installation.block, () => launch(at, host));
  });
}

/**
 * All of its settings in a file of its own: those in /etc/docker belong to another daemon.
 *
 * @param {ReturnType<typeof paths>} at
 * @param {Installation} installation
 */
function settings(at, installation) {
  const value = {
    'data-root': at.data,
    'exec-root': at.execRoot,
    pidfile: at.pidFile,
    hosts: [privateDaemonHost(installation)],
    // By default the socket would be open to the machine's docker group, which was never given this daemon.
    group: 'root',
    bridge: bridgeName(installation),
    'default-address-pools': [{ base: layOut(installation.block).unnamed, size: 26 }],
    'live-restore': true,
    'shutdown-timeout': 60,
    'log-driver': 'json-file',
    'log-opts': { 'max-size': '10m', 'max-file': '3' },
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

/**
 * @param {ReturnType<typeof paths>} at
 * @param {string} host
 */
async function launch(at, host) {
  const log = await open(at.log, 'a', 0o600);
  try {
    const child = spawn('dockerd', ['--config-file', at.settings], {
      detached: true,
      cwd: '/',
      stdio: ['ignore', log.fd, log.fd],
      // The packages' containerd and runc match their dockerd; another one in /usr/local would be found first.
      env: { ...proxySettings(), PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' },
    });
    /** @type {string | undefined} */
    let ended;
    child.on('error', (error) => (ended = error.message));
    child.on('exit', (code, signal) => (ended = `it ended with ${signal ?? code}`));
    child.unref();
    const answers = await waitUntil(
      async () => ended !== undefined || (await askDaemon(host)) === 'answers',
      READY_MS,
      50,
    );
    if (answers && ended === undefined) return;
    const lines = (await readFile(at.log, 'utf8')).trim().split('\n');
    const reason =
      lines.findLast((line) => /level=(fatal|error)|failed/i.test(line)) ?? lines.at(-1) ?? 'it said nothing';
    throw new SetupFailure(
      `the private Docker daemon did not start: ${ended ?? 'no answer in time'}; ${reason.slice(0, 300)}`,
      `read ${at.log}, mend what it names, then run this again; or set DOCKER_HOST to a daemon of yours.`,
    );
  } finally {
    await log.close();
  }
}

/** So that the daemon reaches image registries the way this machine does. */
function proxySettings() {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];
  return Object.fromEntries(names.filter((name) => process.env[name]).map((name) => [name, process.env[name]]));
}

/**
 * Our daemon by what it was started with, whatever its pid file says: the file outlives a killed daemon, and its
 * number may be another program's by now.
 *
 * @param {string} home
 * @param {Installation} installation
 */
async function findDaemon(home, installation) {
  const at = paths(home, installation);
  return livingOwner(at.pidFile, at.settings);
}

/**
 * @param {string} pidFile
 * @param {string} argument that only the process we mean was started with
 */
async function livingOwner(pidFile, argument) {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  if (!Number.isInteger(pid)) return undefined;
  const identity = await identify(pid);
  if (identity === undefined) return undefined;
  return (await argumentsOf(pid)).includes(argument) ? identity : undefined;
}

/**
 * dockerd refuses to start, and waits for a containerd that is not there, while a process with the number in the pid
 * file exists: a stranger, or the zombie of a killed daemon whose parent never reaps it.
 *
 * @param {ReturnType<typeof paths>} at
 */
async function removeStalePidFiles(at) {
  await rm(at.pidFile, { force: true });
  if ((await containerd(at)) === undefined) await rm(at.containerdPidFile, { force: true });
}

/** @param {ReturnType<typeof paths>} at */
function containerd(at) {
  return livingOwner(at.containerdPidFile, join(at.execRoot, 'containerd', 'containerd.toml'));
}

/**
 * Containers run on when their daemon was killed, each under a small process that names the daemon's socket.
 *
 * @param {string} home
 * @param {Installation} installation
 */
export async function hasContainersWithoutDaemon(home, installation) {
  const { execRoot } = paths(home, installation);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)) {
    const args = await argumentsOf(pid);
    if (args[0]?.includes('containerd-shim') && args.some((arg) => arg.startsWith(`${execRoot}/`))) return true;
  }
  return false;
}

/**
 * Stops the daemon and takes its bridges and firewall rules away. Its containers must have been stopped: those still
 * running would run on, out of reach.
 *
 * @param {string} home
 * @param {Installation} installation
 */
export async function stopPrivateDaemon(home, installation) {
  const at = paths(home, installation);
  const supervised = await containerd(at);
  for (const identity of [await findDaemon(home, installation), supervised]) {
    if (identity === undefined) continue;
    if ((await endProcess(identity, STOP_MS)) === 'stuck') {
      throw new SetupFailure(
        `process ${identity.pid} of the private Docker daemon cannot be ended`,
        'it waits for the kernel; restart the machine if it stays.',
      );
    }
  }
  await rm(at.pidFile, { force: true });
  await rm(socketOf(privateDaemonHost(installation)), { force: true });
  await removeNetworkTraces(installation.block);
}

/**
 * Removes what the stopped daemon has outside the home, and unmounts what it mounted.
 *
 * @param {string} home
 * @param {Installation} installation
 */
export async function removePrivateDaemon(home, installation) {
  await stopPrivateDaemon(home, installation);
  const at = paths(home, installation);
  for (const folder of [at.data, at.run]) await unmountBelow(folder);
  await rm(at.data, { recursive: true, force: true });
  await rm(at.run, { recursive: true, force: true });
}

/** @param {string} folder */
async function unmountBelow(folder) {
  for (let tries = 0; tries < 20; tries += 1) {
    const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .map((line) => (line.split(' ')[4] ?? '').replace(/\\040/g, ' '))
      .filter((path) => path === folder || path.startsWith(`${folder}/`));
    if (mounts.length === 0) return;
    // The last mounted first, since one may lie in another.
    for (const path of mounts.reverse()) await tryUnmount(path);
    await sleep(100);
  }
}

/** @param {string} path */
async function tryUnmount(path) {
  await tryCommand('umount', ['--lazy', path], { deadlineMs: 10_000 });
}
