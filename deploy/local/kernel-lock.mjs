import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { SetupFailure, errnoOf } from './failure.mjs';

/**
 * A lock of the kernel on an open file: it ends with this process, however this process ends, so nothing stale is ever
 * left to clean up. The file itself stays.
 *
 * @param {string} path
 * @param {{ wait: boolean }} options whether to wait for another holder to end
 * @returns {Promise<{ release: () => Promise<void> } | { holder: string }>} the lock, or who has it
 */
export async function lockFile(path, { wait }) {
  for (;;) {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    if (!(await flock(file.fd, wait))) {
      const holder = (await file.readFile('utf8')).trim();
      await file.close();
      return { holder };
    }
    // A folder may be removed, lock file included, while somebody waits on the file that was in it.
    if (await isSameFile(file, path)) {
      await file.truncate(0);
      await file.write(`${process.pid}\n`, 0);
      return { release: () => file.close() };
    }
    await file.close();
  }
}

/**
 * @param {import('node:fs/promises').FileHandle} file
 * @param {string} path
 */
async function isSameFile(file, path) {
  try {
    const [opened, named] = await Promise.all([file.stat(), stat(path)]);
    return opened.ino === named.ino && opened.dev === named.dev;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

const BUSY = 75;

/**
 * Node has no call for kernel locks. util-linux's flock locks the description behind the descriptor that it inherits
 * and exits; the lock stays with our descriptor.
 *
 * @param {number} fd
 * @param {boolean} wait
 * @returns {Promise<boolean>} whether the lock is ours now
 */
function flock(fd, wait) {
  const args = [...(wait ? [] : ['--nonblock', '--conflict-exit-code', String(BUSY)]), '3'];
  return new Promise((resolve, reject) => {
    const child = spawn('flock', args, { stdio: ['ignore', 'ignore', 'ignore', fd] });
    child.on('error', () =>
      reject(new SetupFailure('the program flock is missing', 'install the package util-linux.')),
    );
    child.on('close', (code) => {
      if (code === 0 || code === BUSY) resolve(code === 0);
      else reject(new SetupFailure(`flock failed (${code})`, 'keep this folder on a local file system.'));
    });
  });
}
