// `npm test [-- part [filter …]]`: every test that decides a change. It runs on a fresh clone with nothing but Node 20
// and npm, installs and builds what it needs, and does the rest on a private stack beside whatever `npm start` runs.
// The last line is always `N passed, N failed`; the exit code is 0 only when nothing failed.
//
//   npm test                                   everything, in order
//   npm test -- unit libs/hba                  one part, those files
//   npm test -- e2e create -t 'lost reply'     filters are Jest's
//   SUREFOOT_KEEP=1 npm test -- e2e            leaves the stack running, and says where

import { constants } from 'node:os';
import process from 'node:process';
import { setTimeout as timeout } from 'node:timers/promises';
import { endAllChildren } from './child.mjs';
import { installIfNeeded } from './install.mjs';
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
 */
async function part(name, run) {
  if (signal !== undefined) return;
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
 * @returns {Promise<T | undefined>}
 */
async function step(name, run) {
  /** @type {T | undefined} */
  let value;
  await part(name, async () => {
    const limit = timeout(stackTimeLimitMs, undefined, { ref: false }).then(() => {
      throw new Error(`took longer than ${stackTimeLimitMs / 60_000} minutes`);
    });
    value = await Promise.race([run(), limit]);
    return { passed: 0, failed: 0 };
  });
  return value;
}

/** @param {string[]} args */
async function main([wanted, ...filters]) {
  if (wanted !== undefined && !(wanted in parts)) {
    console.error(`There is no part ${wanted}. Parts: ${Object.keys(parts).join(', ')}.`);
    results.push({ name: wanted, passed: 0, failed: 1, minutes: 0 });
    return;
  }
  const chosen = Object.entries(parts).filter(([name]) => wanted === undefined || name === wanted);
  await step('install', installIfNeeded);
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
    // Also when interrupted: the only step that a signal does not leave out.
    const wasInterrupted = signal;
    signal = undefined;
    await step('stack down', takeDownPrivateStack);
    signal = wasInterrupted;
  }
}

await main(process.argv.slice(2));

console.log('\n── minutes');
for (const { name, passed, failed, minutes } of results) {
  console.log(`${name.padEnd(12)} ${minutes.toFixed(1).padStart(5)}   ${passed} passed, ${failed} failed`);
}
console.log(`${'all'.padEnd(12)} ${((performance.now() - startMs) / 60_000).toFixed(1).padStart(5)}`);

const passed = results.reduce((sum, result) => sum + result.passed, 0);
const failed = results.reduce((sum, result) => sum + result.failed, 0) + (signal === undefined ? 0 : 1);
console.log(`${passed} passed, ${failed} failed`);
process.exit(signal === undefined ? Math.min(failed, 1) : 128 + constants.signals[signal]);
