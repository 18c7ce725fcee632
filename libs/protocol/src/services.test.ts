import { expect, test } from '@jest/globals';
import { registryOf } from './services.ts';

test.each([
  ['app', 'docker.io'],
  ['team/app:1', 'docker.io'],
  ['docker.io/team/app', 'docker.io'],
  ['index.docker.io/team/app:1', 'docker.io'],
  ['registry-1.docker.io/team/app', 'docker.io'],
  ['registry.example.com/team/app', 'registry.example.com'],
  ['registry.example.com:5000/app@sha256:1', 'registry.example.com:5000'],
  ['localhost/app', 'localhost'],
  ['index.docker.io', 'docker.io'],
])('%s comes from %s', (image, registry) => {
  expect(registryOf(image)).toBe(registry);
});
