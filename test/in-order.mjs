// The parts of `npm test`, one after the other: what they stand on, what they count, and what is left behind: nothing.

import { constants } from 'node:os';
import process from 'node:process';
import { setTimeout as timeout } from 'node:timers/promises';
import { installPackages, isInstalled } from '../deploy/local/program.mjs';
import { progress } from '../deploy/local/progress.mjs';
import { endAllChildren } from './child.mjs';
import { parts } from './parts.mjs';
import { bringUpPrivateStack, takeDownPrivateStack } from './stack.mjs';

const startMs = performance.now();
/** The first time includes packages and images. */
const stackTimeLimitMs = 15 * 60_000;
/** @type {{ name: string, passed: number, failed: number, minutes: number }[]} */
const results = [];

/** Settles when a signal asks for the end: what is running is ended, what was started is taken down, once. */
const interrupted = new Promise((/** @type {(signal: NodeJS.Signals) => void} */ resolve) => {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, resolve);
});
/** @type {NodeJS.Signals | undefined} */
let signal;
void interrupted.then((name) => {
  signal = name;
  console.log(`\n${name}: ending what runs and taking the stack down`);
  endAllChildren();
});

/**
 * Runs one part, counts it, and never throws: a part that breaks is a failed part.
 *
 * @param {string} name
 * @param {() => Promise<import('./parts.mjs').Tally>} run
 * @param {{ always?: boolean }} [options] `always`: also when the run was interrupted
 */
async function part(name, run, { always = false } = {}) {
  if (signal !== undefined && !always) return;
  console.log(`\n── ${name}`);
  const partStartMs = performance.now();
  let tally = { passed: 0, failed: 1 };
  try {
    tally = await run();
  } catch (error) {
    console.log(`FAILED  ${name}: ${'next' in error ? `${error.message}\n        ${error.next}` : error.stack}`);
  }
  results.push({ name, ...tally, minutes: (performance.now() - partStartMs) / 60_000 });
}

/**
 * A step that the tests stand on. It counts only when it fails, as it is no test.
 *
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} run
 * @param {{ always?: boolean }} [options]
 * @returns {Promise<T | undefined>}
 */
async function step(name, run, options) {
  /** @type {T | undefined} */
  let value;
  const count = async () => {
    const limit = timeout(stackTimeLimitMs, undefined, { ref: false }).then(() => {
      throw new Error(`took longer than ${stackTimeLimitMs / 60_000} minutes`);
    });
    value = await Promise.race([run(), limit]);
    return { passed: 0, failed: 0 };
  };
  await part(name, count, options);
  return value;
}

/** @param {string[]} args */
async function runParts([wanted, ...filters]) {
  if (wanted !== undefined && !(wanted in parts)) {
    console.log(`There is no part ${wanted}. Parts: ${Object.keys(parts).join(', ')}.`);
    results.push({ name: wanted, passed: 0, failed: 1, minutes: 0 });
    return;
  }
  const chosen = Object.entries(parts).filter(([name]) => wanted === undefined || name === wanted);
  await step('install', async () => {
    // Only when needed: npm ci removes node_modules first, under a stack that may be running from it.
    if (!(await isInstalled())) await installPackages(progress());
  });
  if (results.some(({ failed }) => failed > 0)) return;
  for (const [name, { run }] of chosen.filter(([, { needsStack }]) => !needsStack)) {
    await part(name, () => run({ filters }));
  }
  const onStack = chosen.filter(([, { needsStack }]) => needsStack);
  if (onStack.length === 0) return;
  try {
    const home = await step('stack', bringUpPrivateStack);
    for (const [name, { run }] of onStack) {
      await part(name, () => {
        if (home === undefined) throw new Error('not run: there is no stack');
        return run({ home, filters });
      });
    }
  } finally {
    await step('stack down', takeDownPrivateStack, { always: true });
  }
}

/**
 * @param {string[]} args the part, and Jest's filters; nothing for all parts
 * @returns {Promise<number>} the exit code
 */
export async function runInOrder(args) {
  await runParts(args);

  console.log('\n── minutes');
  for (const { name, passed, failed, minutes } of results) {
    console.log(`${name.padEnd(12)} ${minutes.toFixed(1).padStart(5)}   ${passed} passed, ${failed} failed`);
  }
  console.log(`${'all'.padEnd(12)} ${((performance.now() - startMs) / 60_000).toFixed(1).padStart(5)}`);

  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0) + (signal === undefined ? 0 : 1);
  console.log(`${passed} passed, ${failed} failed`);
  return signal === undefined ? Math.min(failed, 1) : 128 + constants.signals[signal];
}
