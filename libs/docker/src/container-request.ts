/**
 * What we ask of a container, and whether what is there is what was asked: a daemon that is killed while it makes a
 * container leaves one without its volume or network, and a name alone says nothing.
 */
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode';

export interface ContainerRequest {
  readonly name: string;
  readonly imageId: string;
  /** `user:group` as Docker takes it. */
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly volume: { readonly name: string; readonly target: string };
  /** Folders of the host. They must exist: a mount that makes its own source hides a mistake. */
  readonly folders: readonly { readonly source: string; readonly target: string; readonly readOnly: boolean }[];
  /** Target → mount options. */
  readonly memoryFolders: Readonly<Record<string, string>>;
  readonly networkId: string;
  readonly aliases: readonly string[];
  /** Published on loopback only. */
  readonly port: { readonly host: number; readonly container: number };
  readonly shmBytes: number;
  readonly stopSignal: string;
  readonly stopTimeoutSeconds: number;
  readonly log: { readonly maxSize: string; readonly maxFiles: number };
}

export function createBody(request: ContainerRequest): ContainerCreateOptions {
  return {
    name: request.name,
    Image: request.imageId,
    User: request.user,
    Entrypoint: [...request.entrypoint],
    Cmd: [...request.command],
    Env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
    Labels: { ...request.labels },
    StopSignal: request.stopSignal,
    StopTimeout: request.stopTimeoutSeconds,
    ExposedPorts: { [`${request.port.container}/tcp`]: {} },
    HostConfig: {
      Mounts: [
        { Type: 'volume', Source: request.volume.name, Target: request.volume.target },
        ...request.folders.map(({ source, target, readOnly }) => ({
          Type: 'bind' as const,
          Source: source,
          Target: target,
          // The daemon leaves out what is false, and what is asked is compared with what it shows.
          ...(readOnly ? { ReadOnly: true } : {}),
        })),
      ],
      Tmpfs: { ...request.memoryFolders },
      NetworkMode: request.networkId,
      PortBindings: {
        [`${request.port.container}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(request.port.host) }],
      },
      RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 },
      ShmSize: request.shmBytes,
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      LogConfig: {
        Type: 'json-file',
        Config: { 'max-size': request.log.maxSize, 'max-file': String(request.log.maxFiles) },
      },
    },
    NetworkingConfig: { EndpointsConfig: { [request.networkId]: { Aliases: [...request.aliases] } } },
  };
}

/** One sentence per difference; empty when the container is exactly what was asked for. */
export function containerDifferences(request: ContainerRequest, found: ContainerInspectInfo): readonly string[] {
  const { name, Image, Env, NetworkingConfig: _network, HostConfig, ...config } = createBody(request);
  const differences = [
    ...differing(`/${name ?? ''}`, found.Name, 'name'),
    ...differing(Image, found.Image, 'image'),
    ...differing(config, found.Config, 'configuration'),
    ...differing(HostConfig, found.HostConfig, 'host configuration'),
    ...(Env ?? []).filter((one) => !found.Config.Env.includes(one)).map((one) => `environment lacks ${one}`),
    ...differing(wantedMounts(request), foundMounts(found), 'mounts'),
  ];
  const networks = Object.values(found.NetworkSettings.Networks).map((network) => network.NetworkID);
  // Before its first start a container is not attached yet, and the daemon shows an endpoint without the network's id.
  const attached = networks.every((id) => id === '' || id === request.networkId) && networks.length === 1;
  return attached ? differences : [...differences, `networks are ${JSON.stringify(networks)}`];
}

/** What is really mounted, one line each: the request's list alone does not say that it came about. */
function wantedMounts({ volume, folders }: ContainerRequest): readonly string[] {
  return [
    `volume ${volume.name} at ${volume.target}, writable`,
    ...folders.map(
      ({ source, target, readOnly }) => `bind ${source} at ${target}, ${readOnly ? 'read-only' : 'writable'}`,
    ),
  ].sort();
}

function foundMounts(found: ContainerInspectInfo): readonly string[] {
  return found.Mounts.filter((mount) => mount.Type !== 'tmpfs')
    .map(
      (mount) =>
        `${mount.Type} ${mount.Name ?? mount.Source} at ${mount.Destination}, ${mount.RW ? 'writable' : 'read-only'}`,
    )
    .sort();
}

/** Every place where what was asked for is not what is there. What the daemon adds (defaults, the image's own) is fine. */
function differing(wanted: unknown, found: unknown, path: string): readonly string[] {
  if (wanted !== null && typeof wanted === 'object' && !Array.isArray(wanted)) {
    const there = (found ?? {}) as Readonly<Record<string, unknown>>;
    return Object.entries(wanted).flatMap(([key, value]) => differing(value, there[key], `${path} ${key}`));
  }
  if (Array.isArray(wanted)) {
    const there: readonly unknown[] = Array.isArray(found) ? found : [];
    if (wanted.length !== there.length) return [`${path} is ${JSON.stringify(found)}`];
    return wanted.flatMap((value, index) => differing(value, there[index], `${path} ${index}`));
  }
  return wanted === found ? [] : [`${path} is ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`];
}
