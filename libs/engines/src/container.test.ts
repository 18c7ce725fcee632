import { describe, expect, test } from '@jest/globals';
import type { EngineContainer } from './container.ts';
import { engineContainerRequest, imageFault } from './container.ts';

const engine: EngineContainer = {
  installation: 'f4a74b75-a7ed-45dc-bc37-d0f153ab228f',
  engineId: '7d4f2d0e-9d43-4b0b-8a55-4f1f6f0d6f11',
  name: 'main',
  token: '0b1c9c1e-6a55-4c2f-9a35-5c8e0f9a1c77',
  image: { id: 'sha256:1', volumes: ['/var/lib/postgresql/data'], repoDigests: [] },
  networkId: 'n',
  volumeName: 'surefoot-11111111-2222-4333-8444-555555555555',
  port: 5433,
  confFolder: '/h/conf',
  socketFolder: '/h/socket',
  groupId: 1_000,
};

describe('the container of an engine', () => {
  test('carries the attempt in its name, our four labels, and the mark of its volume', () => {
    const request = engineContainerRequest(engine);
    expect(request.name).toBe(`surefoot-engine-${engine.token}`);
    expect(request.labels).toEqual({
      'surefoot.installation': engine.installation,
      'surefoot.kind': 'engine',
      'surefoot.id': engine.engineId,
      'surefoot.token': engine.token,
      'surefoot.engine': 'main',
    });
    expect(request.env['SUREFOOT_VOLUME_MARK']).toBe(
      `surefoot installation=${engine.installation} kind=volume id=${engine.engineId} token=11111111-2222-4333-8444-555555555555`,
    );
  });

  test('B062: has its volume where the image has its own, wherever that is', () => {
    for (const [volumes, target] of [
      [['/var/lib/postgresql/data'], '/var/lib/postgresql/data'],
      [['/var/lib/postgresql'], '/var/lib/postgresql'],
      [[], '/var/lib/postgresql/data'],
    ] as const) {
      const request = engineContainerRequest({ ...engine, image: { id: 'sha256:1', volumes, repoDigests: [] } });
      expect(request.mounts[0]).toMatchObject({ type: 'volume', target });
      expect(request.env['SUREFOOT_VOLUME']).toBe(target);
    }
    expect(imageFault({ id: 'sha256:1', volumes: ['/a', '/b'], repoDigests: [] })).toContain('several volumes');
  });
});
