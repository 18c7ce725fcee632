import { spawn } from 'node:child_process';
import { constants, existsSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { lastWords, tryCommand } from './command.mjs';
import { replaceFile } from './durable-file.mjs';
import { SetupFailure } from './failure.mjs';
import { readOwn } from './home.mjs';
import { portOf } from './local-env.mjs';
import { productNode } from './node-runtime.mjs';
import { expectFree } from './ports.mjs';
import { lastWarning, readLog, tellingLine } from './process-log.mjs';
import { REPOSITORY } from './repository.mjs';
import { endProcess, identify, isAlive, waitUntil } from './running-process.mjs';

/**
 * Our own processes on this machine: gateway, worker and reconciler. Each has in the home
 *
 *   run/NAME.pid      its number, for people and their tools
 *   run/NAME.json     its exact identity and the build that it runs, for us
 *   run/NAME.ready    written by itself when it is ready (worker, reconciler)
 *   log/NAME.log      what it says
 *
 * They are told nothing but where their home is: keys would show in their environment.
 */

export const PROCESSES = /** @type {const} */ (['gateway', 'worker', 'reconciler']);

/**
 * Room for new objects, in MB, where V8 would take 16: a fifth to a third less memory. The worker, whose pauses lengthen
 * every operation, has more of it: with 2 it would collect for three times as long as with V8's own choice, with 4 for
 * hardly longer.
 */
const SEMI_SPACE_MB = { gateway: 2, worker: 4, reconciler: 2 };

const READY_MS = 60_000;
/** The worker finishes and settles the effect in hand when it is asked to end. */
const END_MS = 30_000;
const SETUP_MS = 180_000;

/** How often a wait looks at what the processes say. */
const TELL_MS = 1_000;

/**
 * @typedef {import('./running-process.mjs').ProcessIdentity & { build: string, logFrom?: number }} ProcessRecord
 *   `logFrom`: where in its log this run begins, in bytes
 */

/**
 * Starts what does not run, and replaces what runs another build.
 *
 * @param {string} home
 * @param {string} build
 * @param {Record<string, string>} localEnv
 * @param {import('./progress.mjs').Progress} progress
 */
export async function startProcesses(home, build, localEnv, progress) {
  const running = await Promise.all(PROCESSES.map((name) => findProcess(home, name)));
  const outdated = PROCESSES.filter((_, index) => running[index] !== undefined && running[index].build !== build);
  const wanted = PROCESSES.filter((_, index) => running[index]?.build !== build);
  if (wanted.length > 0) {
    if (outdated.length > 0) {
      await progress.step(`stop what runs an older build (${outdated.join(', ')})`, () => endAll(home, outdated));
    }
    if (wanted.includes('gateway')) await expectFree(portOf(localEnv, 'SUREFOOT_URL'), 'SUREFOOT_URL');
    const node = await productNode();
    await progress.step('schema, keys and queues', () => runSetup(node, home));
    for (const name of wanted) await startProcess(node, home, name, build);
  }
  await progress.step('gateway, worker and reconciler', async (note) => {
    await untilAllReady(home, localEnv, note);
  });
}

/**
 * @param {string} home
 * @param {import('./progress.mjs').Progress} progress
 */
export async function stopProcesses(home, progress) {
  /** @type {string[]} */
  const running = [];
  for (const name of PROCESSES) if ((await findProcess(home, name)) !== undefined) running.push(name);
  if (running.length > 0) await progress.step(`stop ${running.join(', ')}`, () => endAll(home, running));
}

/**
 * @param {string} home
 * @param {string} name
 * @returns {Promise<ProcessRecord | undefined>} undefined when it does not run
 */
async function findProcess(home, name) {
  const record = await readRecord(home, name);
  return (await isAlive(record)) ? record : undefined;
}

/**
 * @param {string} home
 * @param {string} name
 * @returns {Promise<ProcessRecord | undefined>} of the last that was started, which may have ended
 */
async function readRecord(home, name) {
  const text = await readOwn(join(home, 'run', `${name}.json`));
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * Migrations, first rows, keys and queues. Can be repeated.
 *
 * @param {string} node
 * @param {string} home
 */
async function runSetup(node, home) {
  const result = await tryCommand(node, [mainOf('setup')], { env: environment(home), cwd: home, deadlineMs: SETUP_MS });
  if (result.code === 0) return;
  throw new SetupFailure(
    `the set-up of the catalog failed: ${tellingLine(result.timedOut ? lastWords(result) : result.stderr || result.stdout)}`,
    'mend what it names, then run this again.',
  );
}

/**
 * @param {string} node
 * @param {string} home
 * @param {(typeof PROCESSES)[number]} name
 * @param {string} build
 */
async function startProcess(node, home, name, build) {
  await rm(readyFile(home, name), { force: true });
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const log = await open(logFile(home, name), flags, 0o600);
  try {
    const logFrom = (await log.stat()).size;
    // A session of its own, so that neither a closed terminal nor Ctrl-C reaches it.
    const child = spawn(node, [`--max-semi-space-size=${SEMI_SPACE_MB[name]}`, mainOf(name)], {
      detached: true,
      cwd: home,
      env: environment(home),
      stdio: ['ignore', log.fd, log.fd],
    });
    /** @type {Error | undefined} */
    let failure;
    child.on('error', (error) => (failure = error));
    child.unref();
    const identity = child.pid === undefined ? undefined : await identify(child.pid);
    if (identity === undefined) {
      throw notStarted(home, name, failure?.message ?? tellingLine(await readLog(logFile(home, name), logFrom)));
    }
    await replaceFile(join(home, 'run', `${name}.pid`), `${identity.pid}\n`);
    await replaceFile(join(home, 'run', `${name}.json`), `${JSON.stringify({ ...identity, build, logFrom })}\n`);
  } finally {
    await log.close();
  }
}

/** @param {string} home @returns {NodeJS.ProcessEnv} */
function environment(home) {
  const { PATH, HOME, TZ, LANG } = process.env;
  const inherited = Object.entries({ PATH, HOME, TZ, LANG, XDG_RUNTIME_DIR: runtimeFolder() });
  return { ...Object.fromEntries(inherited.filter(([, value]) => value !== undefined)), SUREFOOT_HOME: home };
}

/**
 * Where a login session finds it, also when started without one (su, cron): the host's lock may lie there, and must be
 * found in the same place from everywhere.
 */
function runtimeFolder() {
  const usual = `/run/user/${process.getuid?.()}`;
  return process.env.XDG_RUNTIME_DIR ?? (existsSync(usual) ? usual : undefined);
}

/** @param {string} name */
function mainOf(name) {
  return join(REPOSITORY, 'dist', 'apps', name, 'src', 'main.js');
}

/** @param {string} home @param {string} name */
const readyFile = (home, name) => join(home, 'run', `${name}.ready`);
/** @param {string} home @param {string} name */
const logFile = (home, name) => join(home, 'log', `${name}.log`);

/**
 * @param {string} home
 * @param {Record<string, string>} localEnv
 * @param {import('./progress.mjs').Note} note told what is waited for, and why as far as they say it
 */
async function untilAllReady(home, localEnv, note) {
  const waiting = new Set(PROCESSES);
  const tell = async () => {
    const reasons = await Promise.all(
      [...waiting].map(async (name) => {
        const why = lastWarning(await readThisRun(home, name));
        return why === undefined ? name : `${name} (${why})`;
      }),
    );
    note(`waiting for ${reasons.join(', ')}`);
  };
  const timer = setInterval(() => void tell().catch(() => undefined), TELL_MS);
  note(`waiting for ${PROCESSES.join(', ')}`);
  try {
    await Promise.all(
      PROCESSES.map(async (name) => {
        await untilReady(home, name, localEnv);
        waiting.delete(name);
      }),
    );
  } finally {
    clearInterval(timer);
  }
}

/**
 * @param {string} home
 * @param {(typeof PROCESSES)[number]} name
 * @param {Record<string, string>} localEnv
 */
async function untilReady(home, name, localEnv) {
  let alive = true;
  const ready = async () => (name === 'gateway' ? gatewayIsReady(localEnv) : saysReady(home, name));
  const settled = await waitUntil(async () => {
    alive = (await findProcess(home, name)) !== undefined;
    return !alive || ready();
  }, READY_MS);
  if (settled && alive) return;
  const said = tellingLine(await readThisRun(home, name));
  throw alive
    ? new SetupFailure(
        `the ${name} is not ready after ${READY_MS / 1000} s; its last line: ${said}`,
        `read ${logFile(home, name)}; npm start again goes on waiting.`,
      )
    : notStarted(home, name, said);
}

/** @param {Record<string, string>} localEnv */
async function gatewayIsReady(localEnv) {
  try {
    const response = await fetch(`${localEnv.SUREFOOT_URL}/health/ready`, { signal: AbortSignal.timeout(5_000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** @param {string} home @param {string} name */
async function saysReady(home, name) {
  return (await readOwn(readyFile(home, name))) !== undefined;
}

/** @param {string} home @param {string} name @param {string} said */
function notStarted(home, name, said) {
  return new SetupFailure(
    `the ${name} ended while it was starting: ${said}`,
    `read ${logFile(home, name)}, mend what it names, then run this again.`,
  );
}

/** @param {string} home @param {string} name */
async function readThisRun(home, name) {
  return readLog(logFile(home, name), (await readRecord(home, name))?.logFrom);
}

/**
 * @param {string} home
 * @param {readonly string[]} names
 */
async function endAll(home, names) {
  await Promise.all(
    names.map(async (name) => {
      const record = await findProcess(home, name);
      if (record !== undefined && (await endProcess(record, END_MS)) === 'stuck') {
        throw new SetupFailure(
          `the ${name} (process ${record.pid}) cannot be ended`,
          'it waits for the kernel, most likely for a disk; restart the machine if it stays.',
        );
      }
      for (const suffix of ['pid', 'json', 'ready']) await rm(join(home, 'run', `${name}.${suffix}`), { force: true });
    }),
  );
}
