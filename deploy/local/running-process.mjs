import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Processes by exact identity. A pid alone is recycled; a pid with its start time and the boot it belongs to is not.
 */

/**
 * @typedef {object} ProcessIdentity
 * @property {number} pid
 * @property {string} startedAt boot id and start time in clock ticks since that boot
 */

/**
 * @param {number} pid
 * @returns {Promise<ProcessIdentity | undefined>} undefined when there is none, or only a zombie: dead, and waiting for
 *   a parent that may never look
 */
export async function identify(pid) {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The second field is the program's name in brackets, and may itself hold spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startTicks] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X') return undefined;
    return { pid, startedAt: `${boot.trim()}:${startTicks}` };
  } catch {
    return undefined;
  }
}

/**
 * @param {ProcessIdentity | undefined} identity
 * @returns {Promise<boolean>}
 */
export async function isAlive(identity) {
  return identity !== undefined && (await identify(identity.pid))?.startedAt === identity.startedAt;
}

/** @param {number} pid @returns {Promise<string[]>} its arguments; empty when it cannot be read */
export async function argumentsOf(pid) {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0').slice(0, -1);
}

/**
 * Ends a process: asks, waits, and only then forces.
 *
 * @param {ProcessIdentity} identity
 * @param {number} graceMs
 * @returns {Promise<'ended' | 'killed' | 'stuck'>}
 */
export async function endProcess(identity, graceMs) {
  if (await signalAndWait(identity, 'SIGTERM', graceMs)) return 'ended';
  return (await signalAndWait(identity, 'SIGKILL', 10_000)) ? 'killed' : 'stuck';
}

/**
 * @param {ProcessIdentity} identity
 * @param {NodeJS.Signals} signal
 * @param {number} waitMs
 * @returns {Promise<boolean>} whether it has ended
 */
async function signalAndWait(identity, signal, waitMs) {
  if (!(await isAlive(identity))) return true;
  try {
    process.kill(identity.pid, signal);
  } catch {
    // Ended between the look and the signal, or not ours to signal; the wait below tells.
  }
  return waitUntil(async () => !(await isAlive(identity)), waitMs, 25);
}

/**
 * @param {() => Promise<boolean>} condition
 * @param {number} deadlineMs
 * @param {number} [everyMs]
 * @returns {Promise<boolean>} whether it came true in time
 */
export async function waitUntil(condition, deadlineMs, everyMs = 100) {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() > deadline) return false;
    await sleep(everyMs);
  }
}
