import eslint from '@eslint/js';
import jest from 'eslint-plugin-jest';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const always = [
  {
    selector: 'ExportAllDeclaration',
    message: 'Name what a library publishes: `export *` publishes by accident.',
  },
  {
    selector: 'TSEnumDeclaration',
    message: 'Use an `as const` object with a union type: enums have a second, numeric, life.',
  },
];

const inTests = [
  {
    selector: 'MemberExpression[object.name=/^(test|it|describe|suite)$/][property.name=/^(only|skip|todo|failing)$/]',
    message: 'Every test runs, every time.',
  },
  {
    selector: 'CallExpression[callee.object.name=/^(t|context)$/][callee.property.name=/^(skip|todo)$/]',
    message: 'Every test runs, every time.',
  },
  {
    selector: 'CallExpression[callee.property.name="retryTimes"]',
    message: 'A test that passes on retry has failed.',
  },
];

const clocksAndChance = [
  { object: 'Date', property: 'now', message: 'Pure code is given the time.' },
  { object: 'Math', property: 'random', message: 'Pure code is given its random bytes.' },
  { object: 'globalThis', property: 'crypto', message: 'Pure code is given its random bytes.' },
];

export default defineConfig(
  globalIgnores(['dist/', '.cache/', '.surefoot*/', 'node_modules/', 'docs/generated/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // The reason for three-valued outcomes and state tables: a new member must be decided everywhere.
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { requireDefaultForNonUnion: true, considerDefaultExhaustiveForUnions: false },
      ],
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/strict-boolean-expressions': [
        'error',
        { allowNullableBoolean: true, allowNullableObject: true, allowString: false, allowNumber: false },
      ],
      '@typescript-eslint/no-shadow': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      // Nest modules and controllers are empty classes by design.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // Both trust what this code must not: what a foreign type declares of an answer, and what was true before an
      // `await`.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unnecessary-type-conversion': 'off',
      // Nest's decorators want some default type arguments written out.
      '@typescript-eslint/no-unnecessary-type-arguments': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // An implementation of an asynchronous interface need not wait for anything.
      '@typescript-eslint/require-await': 'off',
      // Options of Nest, pg and dockerode are declared as classes and passed as literals everywhere.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      'no-restricted-syntax': ['error', ...always],
      'no-restricted-imports': [
        'error',
        { paths: [{ name: '@nestjs/common', importNames: ['forwardRef'], message: 'Break the cycle instead.' }] },
      ],
      'no-console': 'error',
      eqeqeq: 'error',
      // Causes are chained, not printed into messages.
      'preserve-caught-error': 'error',
    },
  },
  {
    files: ['libs/{kernel,protocol,hba}/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-properties': ['error', ...clocksAndChance],
      'no-restricted-globals': [
        'error',
        ...['process', 'performance', 'crypto', 'fetch', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'],
      ],
      'no-restricted-syntax': [
        'error',
        ...always,
        { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: 'Pure code is given the time.' },
      ],
    },
  },
  {
    // What people see at a terminal.
    files: ['apps/cli/**/*.ts', 'apps/setup/**/*.ts', 'test/bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    // Node runs these as they are, by leaving the types out: what would need more than that is an error at start.
    files: ['test/bench/**/*.ts'],
    rules: { '@typescript-eslint/parameter-properties': ['error', { prefer: 'class-property' }] },
  },
  {
    files: ['**/*.test.ts', 'test/**/*.ts', 'libs/testing/**/*.ts'],
    plugins: { jest },
    rules: {
      'no-restricted-syntax': ['error', ...always, ...inTests],
      'jest/no-focused-tests': 'error',
      'jest/no-disabled-tests': 'error',
      'jest/no-commented-out-tests': 'error',
      'jest/no-identical-title': 'error',
      'jest/no-export': 'off',
      'jest/valid-title': 'error',
      'jest/valid-expect': 'error',
      'jest/valid-expect-in-promise': 'error',
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*', 'fc.assert', 'assert*'] }],
      // Tests reach for what they know is there, and stop with a clear error where it is not.
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
  {
    files: ['**/*.mjs', '*.js'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.scripts.json', tsconfigRootDir: import.meta.dirname },
      globals: {
        AbortController: 'readonly',
        AbortSignal: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        URLSearchParams: 'readonly',
        clearInterval: 'readonly',
        clearTimeout: 'readonly',
        console: 'readonly',
        fetch: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setInterval: 'readonly',
        setTimeout: 'readonly',
      },
    },
    rules: {
      '@typescript-eslint/require-await': 'off',
      // Node's runner waits for what it was told to test.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          checkThenables: true,
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'it', 'describe', 'suite'], package: 'node:test' },
          ],
        },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Parsed JSON is `any` in JavaScript, and there is no cast to say otherwise.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowAny: true },
      ],
      'no-restricted-syntax': ['error', ...always, ...inTests],
      eqeqeq: 'error',
    },
  },
);
