import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * @typedef {object} CommandResult
 * @property {number | null} code null when a signal or our deadline ended it
 * @property {string} stdout
 * @property {string} stderr
 * @property {boolean} missing there is no such program
 * @property {boolean} timedOut our deadline ended it
 */

/**
 * @typedef {object} CommandOptions
 * @property {NodeJS.ProcessEnv} [env] the whole environment; by default ours
 * @property {string} [cwd]
 * @property {string} [input] given on standard input
 * @property {number} [deadlineMs] after it the program's process group is ended; by default ten minutes
 * @property {AbortSignal} [signal] ends it the same way
 * @property {(line: string) => void} [onLine] told each line of either stream as it comes
 */

/** Programs whose process group is told to end when we are interrupted. @type {Set<number>} */
const running = new Set();
process.on('exit', () => {
  for (const pid of running) signalGroup(pid, 'SIGTERM');
});

/** How long a program may take to end by itself once its deadline has passed: dpkg must not be cut in the middle. */
const GRACE_MS = 5_000;

/**
 * Runs a program to its end. Never rejects: a program that fails, is missing or takes too long is an answer.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {CommandOptions} [options]
 * @returns {Promise<CommandResult>}
 */
export function tryCommand(
  program,
  args,
  { env = process.env, cwd, input, deadlineMs = 600_000, signal, onLine } = {},
) {
  return new Promise((resolve) => {
    // A group of its own, so that the deadline reaches what the program started too.
    const child = spawn(program, args, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    const { pid } = child;
    let stdout = '';
    let stderr = '';
    let timedOut = false;
    if (pid !== undefined) running.add(pid);
    const giveUp = () => {
      timedOut = true;
      clearTimeout(timer);
      if (pid === undefined) return;
      signalGroup(pid, 'SIGTERM');
      timer = setTimeout(() => signalGroup(pid, 'SIGKILL'), GRACE_MS);
    };
    let timer = setTimeout(giveUp, deadlineMs);
    signal?.addEventListener('abort', giveUp, { once: true });
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => (stderr += text));
    if (onLine !== undefined) {
      createInterface({ input: child.stdout }).on('line', onLine);
      createInterface({ input: child.stderr }).on('line', onLine);
    }
    /** @param {Partial<CommandResult>} result */
    const end = (result) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      if (pid !== undefined) running.delete(pid);
      resolve({ code: null, stdout, stderr, missing: false, timedOut, ...result });
    };
    child.on('error', (error) => end({ stderr: error.message, missing: 'code' in error && error.code === 'ENOENT' }));
    child.on('close', (code) => end({ code }));
    // A program that ends without reading is not an error of ours.
    child.stdin.on('error', () => undefined).end(input ?? '');
  });
}

/**
 * The last lines a program said, to show why it failed.
 *
 * @param {CommandResult} result
 */
export function lastWords({ stderr, stdout, timedOut }) {
  const said = (stderr.trim() === '' ? stdout : stderr).trim().split('\n').slice(-3).join(' / ');
  return timedOut ? `no end in time${said === '' ? '' : `: ${said}`}` : said;
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended by itself meanwhile.
  }
}
