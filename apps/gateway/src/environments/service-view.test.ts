import { expect, test } from '@jest/globals';
import type { ShownService } from '#catalog';
import { ENVIRONMENT_STATES } from '#protocol';
import { ServiceSchema } from '../schemas/service.ts';
import { shownVersion } from './environment-view.ts';
import { toServiceView } from './service-view.ts';

const IDENTITIES = { containerId: 'c1', imageId: 'sha256:1', ports: { '3000': 20_001 } };

function service(changes: Partial<ShownService> = {}): ShownService {
  return {
    name: 'api',
    image: 'team/api:1',
    spec: {
      command: ['--password=canary'],
      env: { TOKEN: 'canary', A: '1' },
      ports: [3000, 9000],
      health: { tcp: { port: 3000 }, deadlineSeconds: 30 },
      limits: { memoryBytes: 1024 ** 3, cpus: 0.5, pids: 64 },
      readOnly: true,
    },
    address: '127.0.0.1',
    identities: null,
    secret_names: ['key'],
    observed: null,
    observed_at: null,
    ...changes,
  };
}

test('before there is a container it is pending, and its ports have no place yet', () => {
  const view = toServiceView(service(), 'provisioning');
  expect(view).toEqual({
    name: 'api',
    image: 'team/api:1',
    imageDigest: null,
    state: 'pending',
    ports: [
      { container: 3000, address: '127.0.0.1', host: null },
      { container: 9000, address: '127.0.0.1', host: null },
    ],
    env: ['A', 'TOKEN'],
    secrets: ['key'],
    health: { tcp: { port: 3000 }, deadlineSeconds: 30 },
    limits: { memory: 1024 ** 3, cpus: 0.5, pids: 64 },
    readOnly: true,
    user: null,
    observedAt: null,
  });
  expect(ServiceSchema.parse(view)).toEqual(view);
});

test('B112: values of variables and the command are not shown', () => {
  expect(JSON.stringify(toServiceView(service({ identities: IDENTITIES }), 'ready'))).not.toContain('canary');
});

test('B119: where it is published comes from the container that it has', () => {
  const view = toServiceView(service({ identities: IDENTITIES }), 'provisioning');
  expect(view).toMatchObject({ state: 'created', imageDigest: 'sha256:1' });
  expect(view.ports[0]).toEqual({ container: 3000, address: '127.0.0.1', host: 20_001 });
});

test('what was seen of its container is shown with the time of the look', () => {
  const observed = {
    state: 'exited',
    exitCode: 137,
    outOfMemory: true,
    restarts: 3,
    startedAt: '2026-01-01T00:00:00.5Z',
  } as const;
  const seen = service({ identities: IDENTITIES, observed, observed_at: new Date(1_700_000_000_000) });
  expect(toServiceView(seen, 'degraded')).toMatchObject({
    ...observed,
    observedAt: new Date(1_700_000_000_000).toISOString(),
  });
  // The container that was looked at is gone, whatever was seen of it.
  const gone = toServiceView({ ...seen, identities: null }, 'deleting');
  expect(gone).toMatchObject({ state: 'removed', imageDigest: null, observedAt: null });
  expect(gone).not.toHaveProperty('exitCode');
});

test('in every state of its environment it has a state', () => {
  for (const state of ENVIRONMENT_STATES)
    for (const identities of [null, IDENTITIES])
      expect(ServiceSchema.safeParse(toServiceView(service({ identities }), state)).success).toBe(true);
});

test('what is seen of a service makes another version of what is shown, and when it was seen does not', () => {
  expect(shownVersion({ version: '5', services: [] })).toBe('5');
  const observed = { state: 'running', restarts: 0 } as const;
  const version = (changes: Partial<ShownService>): string =>
    shownVersion({ version: '5', services: [service(), service({ observed, observed_at: new Date(1), ...changes })] });
  expect(version({})).toMatch(/^5\.[\w-]{16}$/);
  expect(version({ observed_at: new Date(2) })).toBe(version({}));
  expect(version({ observed: { ...observed, restarts: 1 } })).not.toBe(version({}));
});
