// The private stack of a test run: its own state folder, beside whatever `npm start` has running, and always removed.

import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

// Not the folder for temporary files, which may be memory, and is smaller than a Docker data root. The name is short
// because paths of Unix sockets end at 107 bytes.
const parent = '/var/tmp';
const prefix = 'surefoot-test-';

/** Loaded only when a stack is wanted: a broken set-up then fails the parts that need it, not the whole run. */
const setUp = () => import('../deploy/local/stack.mjs');

/** @returns {Promise<string>} its SUREFOOT_HOME */
export async function bringUpPrivateStack() {
  await sweep();
  const home = mkdtempSync(join(parent, prefix));
  writeFileSync(join(home, 'test-run.pid'), String(process.pid));
  current = home;
  const { bringUp } = await setUp();
  await bringUp({ home });
  return home;
}

/** @type {string | undefined} */
let current;

/** Also after half a start. Does nothing when there is none. */
export async function takeDownPrivateStack() {
  const home = current;
  if (home === undefined) return;
  current = undefined;
  if (process.env.SUREFOOT_KEEP === '1') {
    rmSync(join(home, 'test-run.pid'));
    console.log(`Kept, and running: SUREFOOT_HOME=${home}`);
    return;
  }
  await remove(home);
}

/** A run that was killed could not clean up. One that was told to keep its stack has no pid file. */
async function sweep() {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(prefix))) {
    const home = join(parent, name);
    const pidFile = join(home, 'test-run.pid');
    if (!existsSync(pidFile) || isAlive(Number(readFileSync(pidFile, 'utf8')))) continue;
    console.log(`Removing what an interrupted run left in ${home}`);
    await remove(home);
  }
}

/** @param {string} home */
async function remove(home) {
  const { takeDown } = await setUp();
  await takeDown({ home });
  rmSync(home, { recursive: true, force: true });
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process with this number is alive, and their stack is not ours to remove.
    return error.code === 'EPERM';
  }
}
