import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Problem } from '#kernel';
import { invalidRequest } from '../http/field-faults.ts';
import { EnvironmentToCreateSchema } from './environment.ts';
import { RegistryToSetSchema } from './registry.ts';

const IMAGE = 'team/api:1';

function problem(services: unknown): Problem | undefined {
  const parsed = EnvironmentToCreateSchema.safeParse({ name: 'a', services });
  return parsed.success ? undefined : invalidRequest(parsed.error.issues);
}

function faults(services: unknown): readonly (readonly [string, string])[] {
  return problem(services)?.errors.map(({ field, code }) => [field, code] as const) ?? [];
}

function faultsOf(more: object): readonly string[] {
  return faults([{ name: 'api', image: IMAGE, ...more }]).map(([field]) => field.replace('services[0].', ''));
}

/** What a container's network takes for a name (RFC 1123), within our length, and not taken already. */
function isServiceName(name: string): boolean {
  return (
    name.length >= 1 &&
    name.length <= 40 &&
    /^[a-z]/.test(name) &&
    /^[a-z0-9-]*$/.test(name) &&
    !name.endsWith('-') &&
    !['db', 'localhost'].includes(name)
  );
}

describe('a service’s name', () => {
  test('is accepted exactly when it is a label that nothing else has', () => {
    const odd = fc.string({ unit: 'grapheme', maxLength: 45 });
    const likely = fc.stringMatching(/^[a-z0-9-]{0,42}$/);
    fc.assert(
      fc.property(fc.oneof(odd, likely, fc.constantFrom('db', 'localhost', 'a', 'a\n', 'dB')), (name) => {
        expect(faults([{ name, image: IMAGE }]).length === 0).toBe(isServiceName(name));
      }),
      { numRuns: 500 },
    );
  });

  test('is used once, and that is said beside all other faults', () => {
    expect(
      faults([{ name: 'api', image: 1 }, { name: 'web', image: IMAGE }, null, { name: 'api', image: IMAGE }]),
    ).toEqual([
      ['services[0].image', 'invalid_type'],
      ['services[2]', 'invalid_type'],
      ['services[3].name', 'duplicate'],
    ]);
  });
});

test('what is left out has its default', () => {
  expect(EnvironmentToCreateSchema.parse({ name: 'a', services: [{ name: 'api', image: IMAGE }] }).services).toEqual([
    {
      name: 'api',
      image: IMAGE,
      command: [],
      env: {},
      secrets: {},
      ports: [],
      health: { deadlineSeconds: 60 },
      limits: { memory: 256 * 1024 ** 2, cpus: 1, pids: 256 },
      readOnly: false,
    },
  ]);
});

test('all faults of all services come at once, each with its path', () => {
  expect(
    faults([
      {
        name: 'API',
        image: 'Team/api',
        command: 'run',
        env: { '1A': 'x', B: 1 },
        secrets: { 'a/b': 's', 'ca.pem': 'x', empty: '' },
        ports: [0, 80, 80],
        health: { http: { port: 1, path: 'x' }, tcp: { port: 99_999 } },
        limits: { memory: 1, cpus: 0, disk: 1 },
        readOnly: 'yes',
        user: 'two words',
        privileged: true,
      },
      { image: IMAGE },
    ]),
  ).toEqual([
    ['services[0].name', 'invalid_format'],
    ['services[0].image', 'image'],
    ['services[0].command', 'invalid_type'],
    ['services[0].env.1A', 'invalid_key'],
    ['services[0].env.B', 'invalid_type'],
    ['services[0].secrets.a/b', 'invalid_key'],
    ['services[0].secrets.ca.pem', 'invalid_key'],
    ['services[0].secrets.empty', 'custom'],
    ['services[0].ports[0]', 'too_small'],
    ['services[0].ports', 'custom'],
    ['services[0].health.http.path', 'invalid_format'],
    ['services[0].health.tcp.port', 'too_big'],
    ['services[0].health', 'custom'],
    ['services[0].limits.memory', 'custom'],
    ['services[0].limits.cpus', 'too_small'],
    ['services[0].limits.disk', 'unknown_field'],
    ['services[0].readOnly', 'invalid_type'],
    ['services[0].user', 'invalid_format'],
    ['services[0].privileged', 'unknown_field'],
    ['services[1].name', 'required'],
  ]);
});

test('a key that is wrong is told with the rule', () => {
  const messages = problem([{ name: 'a', image: IMAGE, secrets: { database_url: 'x', '-': 'x' } }])?.errors;
  expect(messages?.map(({ message }) => message)).toEqual([
    'every service finds database_url and ca.pem there already',
    expect.stringContaining('the name of a file'),
  ]);
});

test.each([
  ['a command of 65 words', { command: Array.from({ length: 65 }, () => 'x') }, 'command'],
  ['a word that is too long', { command: ['x'.repeat(4097)] }, 'command[0]'],
  ['a word with NUL', { command: ['ok', 'a\0'] }, 'command[1]'],
  ['half a character', { env: { A: '\ud800' } }, 'env.A'],
  ['a variable with NUL', { env: { A: 'a\0' } }, 'env.A'],
  ['a variable that is too long', { env: { A: 'ü'.repeat(4097) } }, 'env.A'],
  ['101 variables', { env: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`A${n}`, ''])) }, 'env'],
  ['an empty secret', { secrets: { a: '' } }, 'secrets.a'],
  ['a secret with NUL', { secrets: { a: 'a\0b' } }, 'secrets.a'],
  ['a secret that is too long', { secrets: { a: 'x'.repeat(65_537) } }, 'secrets.a'],
  ['51 secrets', { secrets: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`A${n}`, 'x'])) }, 'secrets'],
  ['a secret in the folder above', { secrets: { '..': 'x' } }, 'secrets...'],
  ['11 ports', { ports: Array.from({ length: 11 }, (_, n) => n + 1) }, 'ports'],
  ['half a port', { ports: [1.5] }, 'ports[0]'],
  ['a path without a slash', { health: { http: { port: 1, path: 'health' } } }, 'health.http.path'],
  ['a path with a fragment', { health: { http: { port: 1, path: '/a#b' } } }, 'health.http.path'],
  ['a path with a quote', { health: { http: { port: 1, path: '/a"b' } } }, 'health.http.path'],
  ['a path that is too long', { health: { http: { port: 1, path: `/${'a'.repeat(1024)}` } } }, 'health.http.path'],
  ['a path with a line end', { health: { http: { port: 1, path: '/a\nb' } } }, 'health.http.path'],
  ['two checks', { health: { http: { port: 1, path: '/' }, tcp: { port: 1 } } }, 'health'],
  ['no time', { health: { deadlineSeconds: 0 } }, 'health.deadlineSeconds'],
  ['too much time', { health: { deadlineSeconds: 541 } }, 'health.deadlineSeconds'],
  ['memory in words', { limits: { memory: 'much' } }, 'limits.memory'],
  ['memory below what Docker takes', { limits: { memory: '5m' } }, 'limits.memory'],
  ['too much memory', { limits: { memory: '65g' } }, 'limits.memory'],
  ['no processor', { limits: { cpus: 0 } }, 'limits.cpus'],
  ['no process', { limits: { pids: 0 } }, 'limits.pids'],
])('%s is refused', (_what, more, field) => {
  expect(faultsOf(more)).toEqual([field]);
});

test.each([
  {},
  { length: 1 },
  'api',
  1,
  true,
  null,
  [null],
  [[]],
  ['api'],
  [{ ports: {} }],
  [{ ports: 'x', health: [] }],
])('services of the wrong type, as %j, are refused and nothing else', (services) => {
  expect(problem(services)?.code).toBe('invalid_request');
});

test('eleven services are too many', () => {
  const services = Array.from({ length: 11 }, (_, n) => ({ name: `s${n}`, image: IMAGE }));
  expect(faults(services)).toEqual([['services', 'too_big']]);
  expect(faults(services.slice(1))).toEqual([]);
});

test.each([
  [6 * 1024 ** 2, 6 * 1024 ** 2],
  ['64g', 64 * 1024 ** 3],
  ['300M', 300 * 1024 ** 2],
  ['8192k', 8 * 1024 ** 2],
])('memory of %j is %d bytes', (memory, bytes) => {
  const body = { name: 'a', services: [{ name: 'api', image: IMAGE, limits: { memory } }] };
  expect(EnvironmentToCreateSchema.parse(body).services[0]?.limits.memory).toBe(bytes);
});

describe('B112: a secret is in no refusal', () => {
  const CANARY = 'canary-7f3a';
  const canaries = fc.constantFrom<unknown>(CANARY, `${CANARY}\0`, `${CANARY}${'x'.repeat(65_536)}`, [CANARY], {
    value: CANARY,
  });

  test('of an environment, wherever in it the secret was written', () => {
    fc.assert(
      fc.property(
        canaries,
        fc.constantFrom('secrets', 'secret', 'env', 'command', 'image', 'health', 'limits', 'ports', 'readOnly'),
        fc.boolean(),
        (canary, field, within) => {
          const refused = problem([{ name: 'A', image: IMAGE, [field]: within ? { 'a/b': canary } : canary }]);
          expect(JSON.stringify([refused, refused?.detail, refused?.errors])).not.toContain(CANARY);
        },
      ),
    );
  });

  test('of a registry', () => {
    fc.assert(
      fc.property(canaries, fc.constantFrom('server', 'username', 'password', 'token'), (canary, field) => {
        const body = { server: 'Wrong', username: '', password: '', [field]: canary };
        const parsed = RegistryToSetSchema.safeParse(body);
        const refused = invalidRequest(parsed.error?.issues ?? []);
        expect(JSON.stringify([refused, refused.detail, refused.errors])).not.toContain(CANARY);
      }),
    );
  });
});
