import { describe, expect, test } from '@jest/globals';
import type { ContainerInspectInfo } from 'dockerode';
import type { ContainerRequest } from './container-request.ts';
import { containerDifferences, createBody } from './container-request.ts';

const request: ContainerRequest = {
  name: 'surefoot-service-1',
  imageId: 'sha256:1',
  command: ['serve', '--key', 'value-of-it'],
  env: { SECRETIVE: 'value-of-it' },
  labels: { a: 'b' },
  mounts: [{ type: 'anonymous', target: '/run/surefoot', labels: {}, noCopy: true }],
  memoryFolders: {},
  readOnlyRoot: true,
  networkId: 'n1',
  aliases: ['web'],
  furtherNetworkIds: ['n2'],
  ports: [{ address: '127.0.0.1', host: 20_001, container: 3000 }],
  restart: 'no',
  limits: { memoryBytes: 1_000, cpus: 0.1, pids: 7 },
  log: { maxSize: '10m', maxFiles: 3 },
};
const names = new Map([
  ['n1', 'surefoot-one'],
  ['n2', 'surefoot-two'],
]);

type Found = Record<'HostConfig' | 'Config', Record<string, unknown>> & Record<string, unknown>;

/** A container as the daemon shows it when everything went well. */
function found(change: (found: Found) => void = () => undefined): ContainerInspectInfo {
  const { Image, HostConfig, NetworkingConfig: _network, name, ...config } = createBody(request);
  const container: Found = {
    Name: `/${name ?? ''}`,
    Image,
    Config: { ...config, Env: [...(config.Env ?? []), 'PATH=/bin'] },
    HostConfig: { ...HostConfig },
    Mounts: [{ Type: 'volume', Name: 'f'.repeat(64), Destination: '/run/surefoot', RW: true }],
    NetworkSettings: {
      Networks: {
        'surefoot-one': { NetworkID: 'n1', Aliases: ['web', 'f00'] },
        'surefoot-two': { NetworkID: 'n2', Aliases: null },
      },
    },
  };
  change(container);
  return container as unknown as ContainerInspectInfo;
}

const differences = (change?: (found: Found) => void): readonly string[] =>
  containerDifferences(request, found(change), names);
const networks = (of: object) => (container: Found) => void (container['NetworkSettings'] = { Networks: of });

describe('a container that was asked for', () => {
  test('is what it was asked to be, attached or not yet', () => {
    expect(differences()).toEqual([]);
    const resting = { NetworkID: '', Aliases: ['web'] };
    expect(differences(networks({ 'surefoot-one': resting, 'surefoot-two': resting }))).toEqual([]);
  });

  test.each([
    ['an image', (container: Found) => void (container['Image'] = 'sha256:2'), /^image is "sha256:2"/],
    ['a label', (container: Found) => void (container.Config['Labels'] = {}), /^configuration Labels a is undefined/],
    ['a variable', (container: Found) => void (container.Config['Env'] = []), /^environment lacks SECRETIVE$/],
    ['a command', (container: Found) => void (container.Config['Cmd'] = ['x']), /^configuration Cmd differs$/],
    ['a limit', (container: Found) => void (container.HostConfig['PidsLimit'] = 0), /PidsLimit is 0, wanted 7/],
    ['a port', (container: Found) => void (container.HostConfig['PortBindings'] = null), /PortBindings 3000\/tcp is/],
    ['a mount', (container: Found) => void (container['Mounts'] = []), /^mounts is \[\]/],
    [
      'a mount of its own',
      (container: Found) =>
        void (container['Mounts'] = [{ Type: 'volume', Name: 'x', Destination: '/run/surefoot', RW: true }]),
      /^mounts 0 is "volume x at/,
    ],
    ['a network', networks({ 'surefoot-one': { NetworkID: 'n1', Aliases: ['web'] } }), /^networks are surefoot-one$/],
    [
      'another network of that name',
      networks({ 'surefoot-one': { NetworkID: 'n3', Aliases: ['web'] }, 'surefoot-two': { NetworkID: 'n2' } }),
      /^networks are/,
    ],
    [
      'its name in the network',
      networks({ 'surefoot-one': { NetworkID: 'n1' }, 'surefoot-two': { NetworkID: 'n2' } }),
      /^the network does not know it as web$/,
    ],
  ])('and lacks %s, or has another, is told with it', (_what, change, sentence) => {
    expect(differences(change)).toEqual([expect.stringMatching(sentence)]);
  });

  test('and is another is told without what people wrote into it, on either side', () => {
    const other = (container: Found): void => {
      container.Config = {
        ...container.Config,
        Cmd: ['serve', '--key', 'other-value'],
        Env: ['SECRETIVE=other-value'],
      };
    };
    expect(differences(other)).toEqual(['configuration Cmd differs', 'environment lacks SECRETIVE']);
  });

  test('has its memory limit also on a kernel that does not count swap', () => {
    expect(differences((container) => void (container.HostConfig['MemorySwap'] = -1))).toEqual([]);
    expect(differences((container) => void (container.HostConfig['MemorySwap'] = 2_000))).toHaveLength(1);
    expect(differences((container) => void (container.HostConfig['Memory'] = 0))).toHaveLength(1);
  });
});
