import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { imageFault, registryFault } from './image-reference.ts';

const HASH = 'a'.repeat(64);

test.each([
  'nginx',
  'nginx:1.27',
  'postgrest/postgrest:v12.2.3',
  'docker.io/library/postgres:17',
  'localhost/app',
  'localhost:5000/app:Tag_1.0-RC',
  'registry.example.com:5000/team/sub/api',
  '[2001:db8::1]:5000/app',
  'a__b/c---d/e.f_g',
  `nginx@sha256:${HASH}`,
  `registry.example.com/api:1.2@sha256:${HASH}`,
  `surefoot-local/node:22`,
])('%s is the name of an image', (image) => {
  expect(imageFault(image)).toBeUndefined();
});

test.each([
  ['', 'not the name'],
  [' nginx', 'not the name'],
  ['nginx ', 'not the name'],
  ['https://registry.example.com/app', 'without a scheme'],
  ['Nginx', 'lower case'],
  ['Registry.example.com/app', 'lower case'],
  ['a/B', 'lower case'],
  ['-a', 'not the name'],
  ['a..b', 'not the name'],
  ['a/', 'not the name'],
  ['/a', 'not the name'],
  ['a//b', 'not the name'],
  ['a___b', 'not the name'],
  ['a:', 'a tag'],
  ['a:-x', 'a tag'],
  [`a:${'x'.repeat(129)}`, 'a tag'],
  ['a:1:2', 'a tag'],
  ['a@sha256:12', 'a digest'],
  [`a@sha256:${HASH.toUpperCase()}`, 'a digest'],
  [`a@sha256:${HASH}@sha256:${HASH}`, 'a digest'],
  [`a@md5:${HASH}`, 'a digest'],
  [HASH, 'not by an id'],
  ['a\nb', 'not the name'],
  ['a\n', 'not the name'],
  ['ä', 'not the name'],
  [`a/${'b'.repeat(254)}`, 'at most 255'],
])('%j is none, and the fault says why', (image, why) => {
  expect(imageFault(image)).toContain(why);
});

test('names made of the parts of the grammar are names, in every combination', () => {
  const lower = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const path = fc
    .array(
      fc.tuple(lower, fc.constantFrom('.', '_', '__', '-', '--'), lower).map((parts) => parts.join('')),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    .map((parts) => parts.join('/'));
  const host = fc.constantFrom('', 'localhost/', 'registry.example.com/', '10.0.0.1:5000/', 'a.b-c.d:1/');
  const tag = fc.option(
    fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/).map((text) => `:${text}`),
    { nil: '' },
  );
  const digest = fc.constantFrom('', `@sha256:${HASH}`);
  fc.assert(
    fc.property(host, path, tag, digest, (...parts) => {
      expect(imageFault(parts.join(''))).toBeUndefined();
    }),
  );
});

test.each([
  'docker.io',
  'registry.example.com',
  'registry.example.com:5000',
  'localhost',
  'localhost:5000',
  '10.0.0.1:5000',
])('%s is the name of a registry', (server) => {
  expect(registryFault(server)).toBeUndefined();
});

test.each([
  ['https://registry.example.com', 'without a scheme'],
  ['registry.example.com/', 'as images name it'],
  ['registry.example.com/team', 'as images name it'],
  ['Registry.example.com', 'lower case'],
  ['registry', 'a dot or a port'],
  ['', 'as images name it'],
  ['a b', 'as images name it'],
  ['index.docker.io', 'docker.io'],
])('%j is none, and the fault says why', (server, why) => {
  expect(registryFault(server)).toContain(why);
});
