import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

/**
 * `npm ci` when node_modules is not what package-lock.json says, and only then: it removes node_modules first, under
 * the feet of a stack that may be running from it.
 */
export async function installIfNeeded() {
  if (isInstalled()) return;
  console.log('npm ci (about a minute)');
  const { status } = spawnSync('npm', ['ci', '--loglevel=error'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error(`npm ci ended with ${status}`);
}

/** npm keeps a lock file of what is there; packages for other platforms are rightly missing from it. */
function isInstalled() {
  const wanted = packages('package-lock.json');
  const present = packages('node_modules/.package-lock.json');
  return Object.entries(wanted ?? {}).every(
    ([path, { version, optional }]) =>
      path === '' || present?.[path]?.version === version || (optional === true && present?.[path] === undefined),
  );
}

/**
 * @param {string} file
 * @returns {Record<string, { version: string, optional?: boolean }> | undefined}
 */
function packages(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
