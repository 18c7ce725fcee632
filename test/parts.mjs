// What `npm test` consists of. A part answers how many passed and failed; whatever makes its answer doubtful (a crash,
// a skipped test, no test at all, a program that does not exit) counts as a failure.

import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { productNode } from '../deploy/local/node-runtime.mjs';
import { runToEnd } from './child.mjs';

const root = join(import.meta.dirname, '..');
const minuteMs = 60_000;

/**
 * @typedef {{ passed: number, failed: number }} Tally
 * @typedef {{ home?: string | undefined, filters: string[] }} Surroundings `filters`: what follows the part on the command line
 */

/** @type {Record<string, { needsStack: boolean, run: (surroundings: Surroundings) => Promise<Tally> }>} */
export const parts = {
  check: { needsStack: false, run: runCheck },
  unit: { needsStack: false, run: runUnit },
  contract: { needsStack: true, run: (surroundings) => runJest('contract', surroundings, 6 * minuteMs) },
  e2e: { needsStack: true, run: (surroundings) => runJest('e2e', surroundings, 15 * minuteMs) },
  faults: { needsStack: true, run: (surroundings) => runJest('faults', surroundings, 10 * minuteMs) },
  crash: { needsStack: true, run: (surroundings) => runJest('crash', surroundings, 10 * minuteMs) },
};

/** The Node that the machine brought, which is what the set-up scripts have to be content with. */
function machineNode() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  return folders.map((folder) => join(folder, 'node')).find((path) => existsSync(path)) ?? process.execPath;
}

/**
 * Tests find their stack by SUREFOOT_HOME alone; whatever else of ours is set belongs to another stack.
 *
 * @param {string | undefined} home
 * @returns {NodeJS.ProcessEnv}
 */
function environment(home) {
  const inherited = Object.entries(process.env).filter(
    // NODE_TEST_CONTEXT makes `node --test` report to a parent that is not there.
    ([name]) => (!name.startsWith('SUREFOOT_') || name === 'SUREFOOT_SEED') && name !== 'NODE_TEST_CONTEXT',
  );
  const path = join(root, 'node_modules', '.bin') + delimiter + process.env.PATH;
  return { ...Object.fromEntries(inherited), PATH: path, ...(home === undefined ? {} : { SUREFOOT_HOME: home }) };
}

/**
 * Runs a program that leaves its verdict in a file.
 *
 * @param {string} what
 * @param {string} program
 * @param {(verdict: string) => string[]} args
 * @param {{ home?: string | undefined, timeLimitMs: number, read: (text: string) => Tally }} options
 * @returns {Promise<Tally>}
 */
async function judge(what, program, args, { home, timeLimitMs, read }) {
  const folder = mkdtempSync(join(tmpdir(), 'surefoot-verdict-'));
  const verdict = join(folder, 'verdict');
  /** @param {string} reason */
  const fail = (reason) => {
    console.log(`FAILED  ${what}: ${reason}`);
    return 1;
  };
  /** @type {number | undefined} */
  let writtenMs;
  // Jest writes its verdict and then waits for ever for a handle that a test left open.
  const abandon = () => {
    if (writtenMs === undefined && existsSync(verdict)) writtenMs = performance.now();
    return writtenMs !== undefined && performance.now() - writtenMs > 30_000 ? 'did not exit after its end' : undefined;
  };
  try {
    const { code, ended } = await runToEnd(program, args(verdict), {
      env: environment(home),
      cwd: root,
      timeLimitMs,
      abandon: what === 'jest' ? abandon : undefined,
    });
    const tally = existsSync(verdict) ? read(readFileSync(verdict, 'utf8')) : { passed: 0, failed: 0 };
    if (ended !== undefined) tally.failed += fail(ended);
    else if (tally.passed + tally.failed === 0) tally.failed += fail(`no result, exit code ${code}`);
    else if ((code === 0) !== (tally.failed === 0) && tally.failed === 0) tally.failed += fail(`exit code ${code}`);
    return tally;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runCheck() {
  return judge('check', await productNode(), (verdict) => ['test/check.mjs', '--fresh', '--results', verdict], {
    timeLimitMs: 6 * minuteMs,
    read: JSON.parse,
  });
}

/** @param {Surroundings} surroundings */
async function runUnit({ filters }) {
  const typescript = await runJest('unit', { filters }, 5 * minuteMs);
  const files = readdirSync(join(root, 'deploy', 'local')).filter((name) => name.endsWith('.test.mjs'));
  if (filters.length > 0 || files.length === 0) return typescript;
  const paths = files.map((name) => join('deploy', 'local', name));
  const to = (/** @type {string} */ reporter, /** @type {string} */ destination) => [
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${destination}`,
  ];
  const scripts = await judge(
    'set-up scripts',
    machineNode(),
    (verdict) => ['--test', ...to('spec', 'stdout'), ...to('tap', verdict), ...paths],
    { timeLimitMs: 3 * minuteMs, read: readTap },
  );
  return { passed: typescript.passed + scripts.passed, failed: typescript.failed + scripts.failed };
}

/**
 * @param {string} project
 * @param {Surroundings} surroundings
 * @param {number} timeLimitMs
 * @returns {Promise<Tally>}
 */
async function runJest(project, { home, filters }, timeLimitMs) {
  const selected = filters.some((filter) => filter.startsWith('-'));
  const own =
    home === undefined ? [] : ['--runInBand', '--testTimeout', '120000', '--reporters', './test/progress.mjs'];
  return judge(
    'jest',
    await productNode(),
    (verdict) => [
      '--experimental-vm-modules',
      '--no-warnings=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
      '--ci',
      '--reporters',
      'default',
      ...own,
      '--verbose=false',
      // Before another option: it would take the filters for names of projects.
      '--selectProjects',
      project,
      '--json',
      '--outputFile',
      verdict,
      ...filters,
    ],
    { home, timeLimitMs, read: (text) => readJest(text, selected) },
  );
}

/**
 * @param {string} text Jest's --json
 * @param {boolean} selected tests were chosen by title, so that the others are rightly pending
 * @returns {Tally}
 */
function readJest(text, selected) {
  const verdict = JSON.parse(text);
  const notRun = (selected ? 0 : verdict.numPendingTests) + verdict.numTodoTests;
  if (notRun > 0) console.log(`FAILED  ${notRun} tests did not run: a skipped test proves nothing.`);
  const failed = verdict.numFailedTests + verdict.numRuntimeErrorTestSuites + notRun;
  // A failed hook after the last test fails the file and no test of it.
  const silently = failed === 0 && verdict.numFailedTestSuites > 0 ? verdict.numFailedTestSuites : 0;
  return { passed: verdict.numPassedTests, failed: failed + silently };
}

/**
 * @param {string} text TAP of `node --test`; its last lines count
 * @returns {Tally}
 */
function readTap(text) {
  const count = (/** @type {string} */ name) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  return { passed: count('pass'), failed: count('fail') + count('cancelled') + count('skipped') + count('todo') };
}
