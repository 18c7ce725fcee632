import { existsSync, renameSync, rmSync } from 'node:fs';
import { access, chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { lastWords, tryCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';

/** Packages that set-up installs on the machine, as root, where there is no Docker daemon to use. */

const APT_ENV = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_MODE: 'l', LC_ALL: 'C' };
/** Another apt may be at work, such as the daily upgrade. */
const APT = ['--quiet', '--yes', '-o', 'DPkg::Lock::Timeout=300'];

/** @returns {Promise<boolean>} root, on Debian or Ubuntu or what derives from them */
export async function canInstallPackages() {
  if (process.geteuid?.() !== 0) return false;
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const family = release.split('\n').filter((line) => /^ID(_LIKE)?=/.test(line));
  return family.some((line) => /\b(debian|ubuntu)\b/.test(line));
}

/**
 * Installs Docker's daemon and what a private one needs, and keeps the packages from starting a daemon of their own.
 *
 * @param {import('./progress.mjs').Progress} progress
 */
export async function installDocker(progress) {
  const wanted = await missingPackages();
  if (wanted.length === 0) return;
  progress.say(`There is no Docker daemon here. Installing from this machine's package archive: ${wanted.join(', ')}.`);
  await progress.step(`install ${wanted.join(', ')}`, async (note) => {
    note('reading the package lists');
    if (!(await haveCandidates(wanted))) await apt(['update'], note);
    const packages = (await hasCandidate('docker-cli')) && !(await has('docker')) ? [...wanted, 'docker-cli'] : wanted;
    await withoutServiceStarts(() => apt(['install', '--no-install-recommends', ...packages], note));
    await keepFromStartingAtBoot(wanted);
  });
}

/** @returns {Promise<string[]>} */
async function missingPackages() {
  const missing = [];
  if (!(await exists('/usr/bin/dockerd')) && !(await exists('/usr/sbin/dockerd'))) missing.push('docker.io');
  if (!(await has('iptables'))) missing.push('iptables');
  if (!(await has('ip'))) missing.push('iproute2');
  // Where the kernel enforces AppArmor, no container starts without the program that loads its profile.
  const apparmor = await readFile('/sys/module/apparmor/parameters/enabled', 'utf8').catch(() => 'N');
  if (apparmor.startsWith('Y') && !(await has('apparmor_parser'))) missing.push('apparmor');
  return missing;
}

/** @param {readonly string[]} names */
async function haveCandidates(names) {
  for (const name of names) if (!(await hasCandidate(name))) return false;
  return true;
}

/** @param {string} name */
async function hasCandidate(name) {
  const policy = await tryCommand('apt-cache', ['policy', name], { env: APT_ENV });
  return /Candidate: (?!\(none\))/.test(policy.stdout);
}

/**
 * @param {readonly string[]} args
 * @param {(detail: string) => void} note
 */
async function apt(args, note) {
  const result = await tryCommand('apt-get', [...APT, ...args], {
    env: APT_ENV,
    onLine: (line) => note(line.slice(0, 70)),
  });
  if (result.code === 0) return;
  throw new SetupFailure(
    `apt-get ${args.join(' ')} failed: ${lastWords(result)}`,
    result.missing ? 'install Docker by hand.' : 'run that command by hand, mend what it names, then run this again.',
  );
}

const POLICY = '/usr/sbin/policy-rc.d';
const POLICY_ASIDE = '/usr/sbin/policy-rc.d.before-surefoot';

/**
 * Debian's packages start their service when they are installed, unless this program says no. A daemon that nobody
 * asked for would set up a bridge and firewall rules on the machine. Ours says no only while this process lives, and
 * else what the machine's own said: left behind by a sudden death, it changes nothing.
 *
 * @param {() => Promise<void>} work
 */
async function withoutServiceStarts(work) {
  const found = await readFile(POLICY, 'utf8').catch(() => undefined);
  if (found !== undefined && !found.includes(POLICY_ASIDE)) await rename(POLICY, POLICY_ASIDE);
  process.once('exit', restorePolicy);
  try {
    const lines = [
      '#!/bin/sh',
      `[ ! -e /proc/${process.pid} ] || exit 101`,
      `[ ! -x ${POLICY_ASIDE} ] || exec ${POLICY_ASIDE} "$@"`,
    ];
    await writeFile(POLICY, `${lines.join('\n')}\nexit 0\n`);
    await chmod(POLICY, 0o755);
    await work();
  } finally {
    restorePolicy();
    process.removeListener('exit', restorePolicy);
  }
}

function restorePolicy() {
  rmSync(POLICY, { force: true });
  if (existsSync(POLICY_ASIDE)) renameSync(POLICY_ASIDE, POLICY);
}

/** @param {readonly string[]} installed */
async function keepFromStartingAtBoot(installed) {
  if (!installed.includes('docker.io') || !(await exists('/run/systemd/system'))) return;
  await tryCommand('systemctl', ['disable', 'docker.service', 'docker.socket', 'containerd.service']);
}

/** @param {string} program */
async function has(program) {
  const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const found = await Promise.all(folders.map((folder) => exists(`${folder}/${program}`)));
  return found.includes(true);
}

/** @param {string} path */
async function exists(path) {
  return access(path).then(
    () => true,
    () => false,
  );
}
