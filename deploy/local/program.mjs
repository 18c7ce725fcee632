import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { lastWords, tryCommand } from './command.mjs';
import { replaceFile } from './durable-file.mjs';
import { SetupFailure, errnoOf } from './failure.mjs';
import { lockFile } from './kernel-lock.mjs';
import { productNode } from './node-runtime.mjs';
import { REPOSITORY } from './repository.mjs';

/** The program itself: its packages, and its build. One of each per working copy, whatever homes run from it. */

/**
 * @returns {Promise<boolean>} whether node_modules is what package-lock.json says
 */
export async function isInstalled() {
  const [wanted, present] = await Promise.all([
    packagesIn('package-lock.json'),
    packagesIn('node_modules/.package-lock.json'),
  ]);
  // npm notes what is there in the second file. What is for other platforms is rightly missing from it.
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' || present[path]?.version === version || (optional === true && present[path] === undefined),
  );
}

/**
 * @param {string} file
 * @returns {Promise<Record<string, { version: string, optional?: boolean }>>}
 */
async function packagesIn(file) {
  try {
    return JSON.parse(await readFile(join(REPOSITORY, file), 'utf8')).packages;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return {};
    throw error;
  }
}

/** @param {import('./progress.mjs').Progress} progress */
export async function installPackages(progress) {
  await progress.step('npm ci (this project only, in node_modules)', async (note) => {
    const result = await tryCommand('npm', ['ci', '--loglevel=error'], {
      cwd: REPOSITORY,
      onLine: (line) => note(line.slice(0, 70)),
    });
    if (result.code === 0) return;
    throw new SetupFailure(
      `npm ci failed: ${lastWords(result)}`,
      'see whether the npm registry is reachable (npm ping), then run this again.',
    );
  });
}

/** What the build is made from. Tests are not in it. */
const SOURCE_FOLDERS = ['apps', 'libs'];
const SOURCE_FILES = ['.swcrc', 'nest-cli.json', 'package.json', 'package-lock.json', 'tsconfig.json'];

/**
 * Builds when the sources are not those of the last build.
 *
 * @param {import('./progress.mjs').Progress} progress
 * @returns {Promise<string>} a digest that tells this build from others
 */
export async function buildProgram(progress) {
  const record = join(REPOSITORY, 'dist', '.sources');
  const isBuilt = async (/** @type {string} */ digest) => (await readFile(record, 'utf8').catch(() => '')) === digest;
  const digest = await sourceDigest();
  if (await isBuilt(digest)) return digest;
  await progress.step('build', async () => {
    await mkdir(dirname(record), { recursive: true });
    // Two homes may be brought up from one working copy at the same time.
    const lock = await lockFile(join(REPOSITORY, 'dist', '.lock'), { wait: true });
    try {
      if (await isBuilt(digest)) return;
      const node = await productNode();
      const result = await tryCommand(node, [join('node_modules', '@nestjs', 'cli', 'bin', 'nest.js'), 'build'], {
        cwd: REPOSITORY,
        env: { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` },
        deadlineMs: 180_000,
      });
      if (result.code !== 0) {
        throw new SetupFailure(`the build failed: ${lastWords(result)}`, 'npm run build shows the whole message.');
      }
      await replaceFile(record, digest);
    } finally {
      if ('release' in lock) await lock.release();
    }
  });
  return digest;
}

async function sourceDigest() {
  const files = [...SOURCE_FILES];
  for (const folder of SOURCE_FOLDERS) {
    const entries = await readdir(join(REPOSITORY, folder), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (entry.isFile() && !entry.name.endsWith('.test.ts'))
        files.push(relative(REPOSITORY, join(entry.parentPath, entry.name)));
    }
  }
  const hash = createHash('sha256');
  for (const file of files.sort()) {
    hash
      .update(`${file}\0`)
      .update(await readFile(join(REPOSITORY, file)))
      .update('\0');
  }
  return hash.digest('hex');
}
