// Child processes of the test run: each in a group of its own, with a time limit, and none left behind.

import { spawn } from 'node:child_process';
import process from 'node:process';

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/**
 * Runs to the end, whatever that is; never rejects for what the program does.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {{ env: NodeJS.ProcessEnv, cwd: string, timeLimitMs: number, abandon?: (() => string | undefined) | undefined }} options
 *   `abandon` is asked every second; what it answers is the reason for ending the program at once
 * @returns {Promise<{ code: number | null, ended: string | undefined }>} `ended`: why it was ended from outside
 */
export function runToEnd(program, args, { env, cwd, timeLimitMs, abandon }) {
  return new Promise((resolve) => {
    /** @type {string | undefined} */
    let ended;
    // A group of its own, so that a test's children go with it, and Ctrl-C reaches them through us only.
    // One stream, so that the lines stay in order wherever they are sent to.
    const stdio = /** @type {const} */ (['ignore', process.stdout.fd, process.stdout.fd]);
    const child = spawn(program, args, { env, cwd, stdio: [...stdio], detached: true });
    running.add(child);
    const deadlineMs = performance.now() + timeLimitMs;
    const watch = setInterval(() => {
      const late = performance.now() > deadlineMs ? `took longer than ${timeLimitMs / 60_000} minutes` : undefined;
      const reason = abandon?.() ?? late;
      if (reason === undefined || ended !== undefined) return;
      ended = reason;
      endGroup(child, 'SIGKILL');
    }, 1000);
    /** @param {number | null} code @param {NodeJS.Signals | string | null} signal */
    const settle = (code, signal) => {
      clearInterval(watch);
      running.delete(child);
      // Whatever the leader left in its group ends with it.
      endGroup(child, 'SIGKILL');
      resolve({ code, ended: ended ?? (signal === null ? undefined : `ended by ${signal}`) });
    };
    child.on('error', (error) => settle(null, error.message));
    child.on('exit', settle);
  });
}

/** For an interrupted run. */
export function endAllChildren() {
  for (const child of running) endGroup(child, 'SIGKILL');
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function endGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
