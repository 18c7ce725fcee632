import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { open, serviceSecretAad } from '#settings';
import { ServiceToCreateSchema } from '../schemas/service.ts';
import { haveSecrets, newServices } from './services.ts';

const key = randomBytes(32);

test('secrets are sealed to their service and name, and nothing else of it holds them', () => {
  const body = ServiceToCreateSchema.parse({
    name: 'api',
    image: 'team/api',
    env: { A: 'b' },
    secrets: { token: 'canary', 'other.pem': 'canary' },
    health: { http: { port: 80, path: '/up' } },
  });
  const [service] = newServices(() => key, [body]);
  const { id, secrets, ...rest } = service!;
  expect(rest).toEqual({
    name: 'api',
    image: 'team/api',
    spec: {
      command: [],
      env: { A: 'b' },
      ports: [],
      health: { http: { port: 80, path: '/up' }, deadlineSeconds: 60 },
      limits: { memoryBytes: 256 * 1024 ** 2, cpus: 1, pids: 256 },
      readOnly: false,
    },
  });
  expect(secrets.map(({ name, sealed }) => [name, open(key, sealed, serviceSecretAad(id, name))])).toEqual([
    ['token', 'canary'],
    ['other.pem', 'canary'],
  ]);
  expect(() => open(key, secrets[0]!.sealed, serviceSecretAad(id, 'other.pem'))).toThrow();
});

test('the key is read only where there is something to seal', () => {
  const services = [ServiceToCreateSchema.parse({ name: 'api', image: 'team/api' })];
  const unread = (): never => {
    throw new Error('the key was read');
  };
  expect(newServices(unread, services)).toHaveLength(1);
  expect([haveSecrets(services), haveSecrets([])]).toEqual([false, false]);
});
