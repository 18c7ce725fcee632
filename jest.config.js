import { readFileSync } from 'node:fs';

// One description of the compilation for build and tests. Jest resolves `./x.ts` as written, so the rewriting that the
// build needs must be off here.
const swc = JSON.parse(readFileSync(new URL('.swcrc', import.meta.url), 'utf8'));
delete swc.$schema;
delete swc.jsc.rewriteRelativeImportExtensions;

/**
 * @param {string} displayName
 * @param {string[]} testMatch
 */
const project = (displayName, testMatch) => ({
  displayName,
  testMatch,
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  // `#kernel` resolves to libs/kernel/src/index.ts in tests, to dist/ in production: see "imports" in package.json.
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': ['@swc/jest', { ...swc, swcrc: false, sourceMaps: 'inline' }] },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/\\.surefoot'],
  injectGlobals: false,
  restoreMocks: true,
  globalSetup: '<rootDir>/test/globalSetup.mjs',
});

export default {
  cacheDirectory: '.cache/jest',
  // Real parts on a busy machine: a limit tells a hang from a slow minute, and measures nothing.
  testTimeout: 30_000,
  // Each file that starts Nest leaves memory behind in its worker.
  workerIdleMemoryLimit: '400MB',
  projects: [
    project('unit', ['<rootDir>/{apps,libs}/**/*.test.ts']),
    project('contract', ['<rootDir>/test/contract/**/*.test.ts']),
    project('e2e', ['<rootDir>/test/e2e/**/*.test.ts']),
    project('faults', ['<rootDir>/test/faults/**/*.test.ts']),
    project('crash', ['<rootDir>/test/crash/**/*.test.ts']),
  ],
};
