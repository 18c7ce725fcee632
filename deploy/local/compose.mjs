import { createHash } from 'node:crypto';
import { access, cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastWords, tryCommand } from './command.mjs';
import { architecture, fetchPackages, findArchive } from './debian-archive.mjs';
import { SetupFailure } from './failure.mjs';

/** Docker Compose: the one on this machine where it is recent enough, else a copy of our own in the cache. */

const FILE = fileURLToPath(new URL('../../docker-compose.yml', import.meta.url));

/** The first with inline `configs` and with owners for secrets from the environment. */
const OLDEST = /** @type {const} */ ([2, 24]);

/**
 * @param {string} cache
 * @param {import('./progress.mjs').Progress} progress
 * @returns {Promise<readonly string[]>} the program and its first arguments
 */
export async function findCompose(cache, progress) {
  if (isRecent((await tryCommand('docker', ['compose', 'version', '--short'])).stdout)) return ['docker', 'compose'];
  const kept = join(cache, `docker-compose.${await architecture()}`);
  if (isRecent((await tryCommand(kept, ['version', '--short'])).stdout)) return [kept];
  await progress.step('fetch docker compose (for this project only)', (note) => fetchCompose(cache, kept, note));
  return [kept];
}

/** @param {string} version */
export function isRecent(version) {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version.trim()) ?? [];
  if (major === undefined) return false;
  return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
}

/**
 * @param {string} cache
 * @param {string} kept
 * @param {(detail: string) => void} note
 */
async function fetchCompose(cache, kept, note) {
  const next = 'install the Compose plug-in of Docker (version 2.24 or later), then run this again.';
  const archive = await findArchive(cache);
  if (archive === undefined) throw new SetupFailure('docker compose is missing, and there is no package archive', next);
  const [suite, name] =
    archive.family === 'Debian' ? ['trixie', 'docker-compose'] : [archive.codename, 'docker-compose-v2'];
  // The program stands alone: what its package asks for is for other uses of it.
  const withheld = ['docker', 'docker.io', 'docker-cli', 'docker-buildx', 'libc6', 'containerd', 'runc'];
  const fetched = await fetchPackages({ archive, suite, cache, packages: [name], withheld, note });
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, 'compose-'));
  try {
    for (const file of fetched.files.filter((path) => path.includes(`/${name}_`))) {
      const unpacked = await tryCommand('dpkg', ['--extract', file, work]);
      if (unpacked.code !== 0)
        throw new SetupFailure(`docker compose cannot be unpacked: ${lastWords(unpacked)}`, next);
    }
    const places = ['usr/libexec/docker/cli-plugins', 'usr/lib/docker/cli-plugins', 'usr/bin'];
    for (const place of places) {
      const program = join(work, place, 'docker-compose');
      if (
        !(await access(program).then(
          () => true,
          () => false,
        ))
      )
        continue;
      await cp(program, join(work, 'docker-compose'), { dereference: true });
      await rename(join(work, 'docker-compose'), kept);
      return;
    }
    throw new SetupFailure(`the package ${name} of ${suite} holds no docker-compose`, next);
  } finally {
    await rm(work, { recursive: true, force: true });
    await fetched.discard();
  }
}

/** One Compose project: catalog and broker of one installation. */
export class ComposeStack {
  /**
   * @param {readonly string[]} program
   * @param {import('./docker-cli.mjs').Docker} docker
   * @param {Record<string, string>} variables
   */
  constructor(program, docker, variables) {
    this.program = program;
    this.docker = docker;
    this.variables = variables;
  }

  /** @param {string} id an installation's @returns {string} */
  static projectOf(id) {
    return `surefoot-${id}`;
  }

  /** What a running stack was made from; another digest means that it has to be made again. */
  async digest() {
    const hash = createHash('sha256').update(await readFile(FILE));
    for (const [name, value] of Object.entries(this.variables).sort()) hash.update(`\0${name}\0${value}`);
    return hash.digest('hex');
  }

  /** @param {readonly string[]} args */
  async run(args) {
    const [program = 'docker', ...first] = this.program;
    // Settings in the user's shell or in a .env file beside the project are about other projects.
    const env = Object.entries(this.docker.env).filter(([name]) => !name.startsWith('COMPOSE_'));
    const result = await tryCommand(program, [...first, '--env-file', '/dev/null', '--file', FILE, ...args], {
      env: { ...Object.fromEntries(env), ...this.variables },
      deadlineMs: 300_000,
    });
    if (result.code === 0) return result.stdout;
    throw new SetupFailure(
      `docker compose ${args[0]} failed: ${lastWords(result)}`,
      `mend what it names, then run this again (the daemon is at ${this.docker.host}).`,
    );
  }

  /** Creates and starts what is missing, stopped or out of date. */
  up() {
    return this.run(['up', '--detach', '--no-build', 'catalog', 'broker']);
  }
}
