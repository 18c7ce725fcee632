import { describe, expect, test } from '@jest/globals';
import type { EffectSpecs } from '#protocol';
import { candidates } from './ports.ts';
import { serviceContainerRequest } from './request.ts';

const attempt = { installation: 'f4a74b75-a7ed-45dc-bc37-d0f153ab228f', token: '0b1c9c1e-6a55-4c2f-9a35-5c8e0f9a1c77' };
const spec: EffectSpecs['container'] = {
  environmentId: '7d4f2d0e-9d43-4b0b-8a55-4f1f6f0d6f11',
  serviceId: '11111111-2222-4333-8444-555555555555',
  name: 'web',
  imageId: 'sha256:1',
  networkId: 'n',
  command: [],
  env: { A: 'b' },
  limits: { memoryBytes: 1, cpus: 1, pids: 1 },
  readOnly: true,
};
const image = (...volumes: readonly string[]): Parameters<typeof serviceContainerRequest>[2] => ({
  id: 'sha256:1',
  volumes,
  repoDigests: [],
});
const targets = (more: Partial<typeof spec>, ...volumes: readonly string[]): readonly string[] => {
  const { mounts, memoryFolders } = serviceContainerRequest(attempt, { ...spec, ...more }, image(...volumes), [], true);
  return [...mounts.map(({ target }) => target), ...Object.keys(memoryFolders)];
};

describe('the container of a service', () => {
  test('has its files’ folder, each folder that the image declares once, and a place for temporary files', () => {
    expect(targets({})).toEqual(['/run/surefoot', '/tmp']);
    expect(targets({}, '/data', '/data/', '//var//lib')).toEqual(['/run/surefoot', '/data', '/var/lib', '/tmp']);
    // The daemon refuses a place that is mounted twice.
    expect(targets({}, '/tmp', '/run/surefoot/')).toEqual(['/run/surefoot', '/tmp']);
    expect(targets({ readOnly: false })).toEqual(['/run/surefoot']);
  });

  test('mounts nothing of the host, and names no volume that another could name', () => {
    const { mounts } = serviceContainerRequest(attempt, spec, image('/data'), [], true);
    expect(mounts.map(({ type }) => type)).toEqual(['anonymous', 'anonymous']);
  });

  test('keeps the image’s entrypoint, its command where none is given, and its user', () => {
    const request = serviceContainerRequest(attempt, spec, image(), [], false);
    for (const left of ['command', 'entrypoint', 'user', 'init', 'furtherNetworkIds'])
      expect(request).not.toHaveProperty(left);
    expect(serviceContainerRequest(attempt, { ...spec, command: ['x'] }, image(), [], true)).toMatchObject({
      command: ['x'],
      init: true,
    });
  });
});

describe('host ports', () => {
  test('are tried each once, from an offset of the installation’s own', () => {
    const range = { from: 20_000, to: 20_099 };
    const all = candidates(range, attempt.installation);
    expect([...all].sort()).toEqual(Array.from({ length: 100 }, (_, index) => 20_000 + index));
    expect(all).toEqual(candidates(range, attempt.installation));
    const firsts = new Set(Array.from({ length: 50 }, (_, index) => candidates(range, `installation ${index}`)[0]));
    expect(firsts.size).toBeGreaterThan(25);
    expect(candidates({ from: 5, to: 5 }, 'x')).toEqual([5]);
  });
});
