// The private stack of a test run: its own state folder, beside whatever `npm start` has running, and always removed.

import { existsSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { isHome } from '../deploy/local/home.mjs';

// Not the folder for temporary files, which may be memory, and is smaller than a Docker data root. The name is short
// because paths of Unix sockets end at 107 bytes.
const parent = '/var/tmp';
const prefix = 'surefoot-test-';

/** Loaded only when a stack is wanted: a broken set-up then fails the parts that need it, not the whole run. */
const setUp = () => import('../deploy/local/stack.mjs');

/** @type {string | undefined} */
let current;

/** @returns {Promise<string>} its SUREFOOT_HOME */
export async function bringUpPrivateStack() {
  await sweep();
  current = mkdtempSync(join(parent, prefix));
  writeFileSync(pidFile(current), String(process.pid));
  const home = homeIn(current);
  const { bringUp } = await setUp();
  await bringUp({ home });
  return home;
}

/** Also after half a start. Does nothing when there is none. */
export async function takeDownPrivateStack() {
  const folder = current;
  if (folder === undefined) return;
  current = undefined;
  if (process.env.SUREFOOT_KEEP === '1') {
    rmSync(pidFile(folder));
    console.log(`Kept, and running: SUREFOOT_HOME=${homeIn(folder)}`);
    return;
  }
  await remove(folder);
}

/** A run that was killed could not clean up. One that was told to keep its stack has no pid file. */
async function sweep() {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(prefix))) {
    const folder = join(parent, name);
    // Anybody may write into this folder: what is not our own user's is not ours to remove.
    if (lstatSync(folder).uid !== process.getuid?.()) continue;
    if (!existsSync(pidFile(folder)) || isAlive(Number(readFileSync(pidFile(folder), 'utf8')))) continue;
    console.log(`Removing what an interrupted run left in ${folder}`);
    await remove(folder);
  }
}

/** @param {string} folder */
async function remove(folder) {
  if (await isHome(homeIn(folder))) {
    const { removeInstallation } = await setUp();
    await removeInstallation({ home: homeIn(folder) });
  }
  rmSync(folder, { recursive: true, force: true });
}

/** The set-up takes only a folder that is empty or its own, so what we note about it stands beside it. @param {string} folder */
const homeIn = (folder) => join(folder, 'home');

/** @param {string} folder */
const pidFile = (folder) => join(folder, 'test-run.pid');

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
