// `npm run check [-- part …] [--fresh]`: everything about the sources that a tool can decide without running them.
// Prints one line per part, and what a failed part said. `--fresh` does not read the lint cache: a cached verdict on a
// file does not know that a type it uses has changed elsewhere, which is good enough while writing and not for a verdict.

import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { brokenHabits } from './habits.mjs';

const root = join(import.meta.dirname, '..');
const bin = join(root, 'node_modules', '.bin');
const timeLimitMs = 5 * 60_000;

const { values: options, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { fresh: { type: 'boolean', default: false }, results: { type: 'string' } },
});

const sources = ['apps', 'libs', 'test', 'deploy'].filter((folder) => existsSync(join(root, folder)));
const lintCache = options.fresh ? [] : ['--cache', '--cache-strategy', 'content', '--cache-location', '.cache/eslint'];

/** The slowest first, so that the second core is busy to the end. */
const parts = {
  lint: () => run('eslint', '--max-warnings', '0', ...lintCache, '.'),
  types: () => run('tsc', '--noEmit'),
  'script types': () => run('tsc', '--noEmit', '-p', 'tsconfig.scripts.json'),
  format: () =>
    run(
      'prettier',
      '--check',
      '--log-level',
      'warn',
      '--cache',
      '--cache-strategy',
      'content',
      '--cache-location',
      '.cache/prettier',
      '.',
    ),
  arrows: () => run('depcruise', ...sources),
  unused: () => run('knip', '--no-progress', '--no-config-hints'),
  habits: async () => {
    const broken = brokenHabits(root);
    return { ok: broken.length === 0, output: broken.join('\n') };
  },
};

/**
 * @param {string} tool
 * @param {string[]} args
 * @returns {Promise<{ ok: boolean, output: string }>}
 */
function run(tool, ...args) {
  return new Promise((resolve) => {
    // The tools start with `env node`: ours must come before the machine's.
    const env = { ...process.env, PATH: bin + delimiter + process.env.PATH };
    const child = spawn(join(bin, tool), args, {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeLimitMs,
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code, signal) => {
      if (signal !== null) output += `\n${tool} was ended by ${signal}`;
      resolve({ ok: code === 0, output });
    });
  });
}

const unknown = wanted.filter((name) => !(name in parts));
if (unknown.length > 0) {
  console.error(`No such part: ${unknown.join(', ')}. Parts: ${Object.keys(parts).join(', ')}.`);
  process.exit(2);
}

const queue = Object.entries(parts).filter(([name]) => wanted.length === 0 || wanted.includes(name));
let passed = 0;
let failed = 0;

async function lane() {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const [name, execute] = next;
    const start = performance.now();
    const { ok, output } = await execute();
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(12)}  ${seconds.padStart(5)} s`);
    if (!ok) console.log(output.trim().replace(/^/gm, '        '));
    if (ok) passed += 1;
    else failed += 1;
  }
}

await Promise.all([lane(), lane()]);

if (options.results !== undefined) writeFileSync(options.results, JSON.stringify({ passed, failed }));
process.exitCode = failed === 0 ? 0 : 1;
