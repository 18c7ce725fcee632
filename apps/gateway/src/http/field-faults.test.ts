import { expect, test } from '@jest/globals';
import type { z } from 'zod';
import type { Problem } from '#kernel';
import { EnvironmentToCreateSchema } from '../schemas/environment.ts';
import { ProjectToCreateSchema } from '../schemas/project.ts';
import { invalidRequest } from './field-faults.ts';

function refused(schema: z.ZodType, body: unknown): Problem {
  const parsed = schema.safeParse(body);
  if (parsed.success) throw new Error('the schema took it');
  return invalidRequest(parsed.error.issues);
}

function faults(body: unknown): readonly (readonly [string, string])[] {
  return refused(EnvironmentToCreateSchema, body).errors.map(({ field, code }) => [field, code] as const);
}

test('all field errors come at once, each with its field and a code', () => {
  expect(
    faults({
      name: 'pg_x',
      connectionLimit: 'many',
      extensions: ['ok', 'not ok'],
      labels: { a: 1 },
      unknown: true,
      other: 1,
    }),
  ).toEqual([
    ['name', 'name'],
    ['extensions[1]', 'invalid_format'],
    ['connectionLimit', 'invalid_type'],
    ['labels.a', 'invalid_type'],
    ['unknown', 'unknown_field'],
    ['other', 'unknown_field'],
  ]);
});

test('a missing field says so', () => {
  const [fault] = refused(EnvironmentToCreateSchema, {}).errors;
  expect(fault).toEqual({ field: 'name', code: 'required', message: 'this field is needed' });
});

test('a missing body is a fault of the body itself', () => {
  expect(faults(undefined)).toEqual([['', 'required']]);
  expect(faults([])).toEqual([['', 'invalid_type']]);
});

test.each([
  ['cidrs', { cidrs: ['10.0.0.0/8'] }],
  ['protected', { protected: true }],
  ['ttl', { ttl: '1h' }],
  ['ttl', { ttl: null }],
])('%s is refused as not built, never ignored', (field, more) => {
  const problem = refused(EnvironmentToCreateSchema, { name: 'a', ...more });
  expect(problem.code).toBe('not_supported');
  expect(problem.detail).toContain(field);
  expect(problem.errors).toEqual([expect.objectContaining({ field, code: 'not_supported' })]);
});

test('beside a real fault, a field that is not built is one more fault', () => {
  expect(refused(EnvironmentToCreateSchema, { ttl: 1 }).code).toBe('invalid_request');
});

test('what DESIGN allows to be empty may be empty', () => {
  const body = { name: 'a', services: [], cidrs: [], protected: false, profile: 'local', labels: {} };
  expect(EnvironmentToCreateSchema.parse(body)).toEqual({ ...body, extensions: [], connectionLimit: 20 });
});

test.each([
  ['another profile', { profile: 'private' }, 'profile'],
  ['no connections', { connectionLimit: 0 }, 'connectionLimit'],
  ['half a connection', { connectionLimit: 1.5 }, 'connectionLimit'],
  ['too many connections', { connectionLimit: 1001 }, 'connectionLimit'],
  ['an extension twice', { extensions: ['a', 'a'] }, 'extensions'],
  ['an extension that is an injection', { extensions: ['a"; drop'] }, 'extensions[0]'],
  ['a label with NUL', { labels: { a: 'b\0' } }, 'labels.a'],
  ['a label with half a character', { labels: { a: '\ud800' } }, 'labels.a'],
  ['a label without a name', { labels: { '': 'b' } }, 'labels.'],
  ['too many labels', { labels: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [n, ''])) }, 'labels'],
])('%s is refused', (_what, more, field) => {
  expect(faults({ name: 'a', ...more }).map(([name]) => name)).toEqual([field]);
});

test.each(['a/b', '', 'ü', '-a', 'a-', 'a'.repeat(64), '0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d'])(
  'a project cannot be named %j',
  (name) => {
    expect(refused(ProjectToCreateSchema, { name }).errors.map(({ field }) => field)).toEqual(['name']);
  },
);

test.each<[object, string, string]>([
  [{ env: ['A=1'] }, 'env', 'an object is needed, such as {"MODE": "test"}'],
  [{ env: { PORT: 8080 } }, 'env.PORT', 'text in quotes is needed, such as "8080" or "true"'],
  [
    { env: { '1': '' } },
    'env.1',
    'a variable’s name has letters, digits and underscores, and does not begin with a digit',
  ],
  [{ command: 'serve' }, 'command', 'a list is needed, such as ["serve", "--port", "8080"]'],
  [{ ports: ['8080:80'] }, 'ports[0]', 'a number is needed, such as 8080'],
  [{ ports: [0] }, 'ports[0]', 'a port is a whole number from 1 to 65535'],
  [{ ports: 8080 }, 'ports', 'a list is needed, such as [8080]'],
  [{ user: 1000 }, 'user', 'text in quotes is needed, such as "redis" or "1000:1000"'],
  [{ user: 'a b' }, 'user', 'a user or user:group, by names or numbers, such as redis or 1000:1000'],
  [{ readOnly: 'yes' }, 'readOnly', 'true or false is needed'],
  [{ limits: { cpus: 0 } }, 'limits.cpus', 'from 0.01 to 64 processors'],
  [{ health: { http: { port: 1 } } }, 'health.http.path', 'this field is needed'],
  [{ health: { deadlineSeconds: 600 } }, 'health.deadlineSeconds', 'from 1 to 540 seconds'],
])('%j is told in plain words, with what is right', (more, field, message) => {
  const services = [{ name: 'api', image: 'a', ...more }];
  const { errors, detail } = refused(EnvironmentToCreateSchema, { name: 'a', services });
  expect(errors).toEqual([expect.objectContaining({ field: `services[0].${field}`, message })]);
  expect(detail).toBe(`services[0].${field}: ${message}`);
});

test('too many services are told with how many there may be; the detail says how many faults there are more', () => {
  const services = Array.from({ length: 11 }, (_, index) => ({ name: `s${index}`, image: 'a' }));
  const { errors, detail } = refused(EnvironmentToCreateSchema, { services });
  expect(errors.map(({ message }) => message)).toEqual([
    'this field is needed',
    'at most 10 services in an environment',
  ]);
  expect(detail).toBe('name: this field is needed; and 1 more, see "errors"');
});

test.each([
  ['readonly', 'readOnly'],
  ['read_only', 'readOnly'],
  ['port', 'ports'],
  ['environment', 'env'],
  ['healthcheck', 'health'],
  ['imgae', 'image'],
  ['comand', 'command'],
])('a field %s is told to be %s, perhaps', (key, meant) => {
  const services = [{ name: 'api', image: 'a', [key]: 1 }];
  const [fault] = refused(EnvironmentToCreateSchema, { name: 'a', services }).errors;
  expect(fault?.message).toBe(
    `there is no such field; did you mean ${meant}? there are name, image, command, env, secrets, ports, health, limits, readOnly, user`,
  );
});

test('a field that is like none is told which there are', () => {
  const [fault] = refused(ProjectToCreateSchema, { name: 'a', x: 1 }).errors;
  expect(fault?.message).toBe('there is no such field; there are name');
});
