import { tryCommand } from './command.mjs';
import { Docker, askDaemon } from './docker-cli.mjs';
import { SetupFailure } from './failure.mjs';
import { writeInstallation } from './installation.mjs';
import { canInstallPackages, installDocker } from './machine-packages.mjs';
import { privateDaemonHost, startPrivateDaemon } from './private-daemon.mjs';

/**
 * Which Docker daemon an installation lives in. Decided once and kept: its containers and volumes are there.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 */

const DEFAULT_HOST = 'unix:///var/run/docker.sock';

/**
 * @param {string} home
 * @param {Installation} installation
 * @param {import('./progress.mjs').Progress} progress
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<Docker>} a daemon that answers
 */
export async function reachDaemon(home, installation, progress, env = process.env) {
  const wish = env.DOCKER_HOST === '' ? undefined : env.DOCKER_HOST;
  const kept = installation.docker;
  if (kept !== undefined && wish !== undefined && wish !== kept.host) {
    throw new SetupFailure(
      `DOCKER_HOST is ${wish}, but this installation lives in the daemon at ${kept.host}`,
      'unset DOCKER_HOST, or name another SUREFOOT_HOME for an installation in that other daemon.',
    );
  }
  const docker = kept ?? (await decide(installation, wish, progress));
  if (kept === undefined) {
    installation.docker = docker;
    await writeInstallation(home, installation);
  }
  if (docker.private) await startPrivateDaemon(home, installation, progress);
  else await expectAnswer(docker.host);
  return new Docker(docker.host);
}

/**
 * A daemon of another user without root, or in a virtual machine, keeps its networks where our firewall does not reach.
 *
 * @param {Docker} docker
 * @param {Installation} installation
 */
export async function isOnThisNetwork(docker, { docker: daemon }) {
  if (daemon?.private) return true;
  const info = await docker.run(['info', '--format', '{{.OperatingSystem}} {{.SecurityOptions}}']);
  return !/Docker Desktop|name=rootless/.test(info);
}

/**
 * @param {Installation} installation
 * @param {string | undefined} wish
 * @param {import('./progress.mjs').Progress} progress
 * @returns {Promise<{ host: string, private: boolean }>}
 */
async function decide(installation, wish, progress) {
  if (wish !== undefined) {
    await expectAnswer(wish);
    return { host: wish, private: false };
  }
  const host = await hostOfContext();
  const state = await askDaemon(host);
  if (state === 'answers') {
    await expectCommandLine();
    return { host, private: false };
  }
  if (state === 'absent' && (await canInstallPackages())) {
    await installDocker(progress);
    return { host: privateDaemonHost(installation), private: true };
  }
  throw unreachable(host, state);
}

/** @param {string} host */
async function expectAnswer(host) {
  const state = await askDaemon(host);
  if (state !== 'answers') throw unreachable(host, state);
  await expectCommandLine();
}

/** @returns {Promise<string>} where the user's `docker` would go */
async function hostOfContext() {
  const shown = await tryCommand('docker', ['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}']);
  const host = shown.stdout.trim();
  return shown.code === 0 && host.startsWith('unix://') ? host : DEFAULT_HOST;
}

async function expectCommandLine() {
  if (!(await tryCommand('docker', ['--version'])).missing) return;
  throw new SetupFailure(
    'a Docker daemon answers, but the program docker is missing',
    'install it (on Debian: apt-get install docker-cli, or docker.io before trixie).',
  );
}

/**
 * @param {string} host
 * @param {import('./docker-cli.mjs').DaemonState} state
 */
function unreachable(host, state) {
  if (state === 'denied') {
    return new SetupFailure(
      `you may not use the Docker daemon at ${host}`,
      'have yourself added to the group docker (usermod -aG docker USER) and log in again, or run as root.',
    );
  }
  if (state === 'silent') {
    return new SetupFailure(`the Docker daemon at ${host} does not answer`, 'restart it, then run this again.');
  }
  return new SetupFailure(
    `there is no Docker daemon at ${host}`,
    'start one or set DOCKER_HOST to its socket. As root on Debian or Ubuntu, npm start installs one itself.',
  );
}
