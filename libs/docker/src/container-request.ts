/**
 * What we ask of a container, and whether what is there is what was asked: a daemon that is killed while it makes a
 * container leaves one without its volume or network, and a name alone says nothing.
 */
import type { ContainerCreateOptions, ContainerInspectInfo, MountSettings } from 'dockerode';

export interface ContainerRequest {
  readonly name: string;
  readonly imageId: string;
  /** Each of these is the image's where it is left out. `user:group` as Docker takes it. */
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly stop?: { readonly signal: string; readonly timeoutSeconds: number };
  readonly hostname?: string;
  /** What its resolver asks about names that are not of its networks, and the options for its resolv.conf. */
  readonly resolver?: { readonly servers: readonly string[]; readonly options: readonly string[] };
  /** Added to the image's. */
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts: readonly ContainerMount[];
  /** Target → mount options. */
  readonly memoryFolders: Readonly<Record<string, string>>;
  readonly readOnlyRoot: boolean;
  readonly networkId: string;
  readonly aliases: readonly string[];
  /** Further ones that it is connected to once it is made: the daemon takes one only. */
  readonly furtherNetworkIds?: readonly string[];
  readonly ports: readonly PublishedPort[];
  readonly restart: 'no' | 'unless-stopped';
  /** A first process of the daemon's own that passes signals on and takes in orphans. */
  readonly init?: boolean;
  readonly limits?: { readonly memoryBytes: number; readonly cpus: number; readonly pids: number };
  readonly shmBytes?: number;
  readonly log: { readonly maxSize: string; readonly maxFiles: number };
}

export interface PublishedPort {
  readonly address: string;
  readonly host: number;
  readonly container: number;
}

type ContainerMount =
  | { readonly type: 'volume'; readonly name: string; readonly target: string }
  /** The container's own, without a name of ours: it goes with the container. `noCopy`: nothing of the image comes into it. */
  | {
      readonly type: 'anonymous';
      readonly target: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly noCopy: boolean;
    }
  /** A folder of the host. It must exist: a mount that makes its own source hides a mistake. */
  | { readonly type: 'folder'; readonly source: string; readonly target: string; readonly readOnly: boolean };

export function createBody(request: ContainerRequest): ContainerCreateOptions {
  const { user, entrypoint, command, stop, hostname, limits, shmBytes, init, resolver } = request;
  return {
    name: request.name,
    Image: request.imageId,
    ...(user === undefined ? {} : { User: user }),
    ...(entrypoint === undefined ? {} : { Entrypoint: [...entrypoint] }),
    ...(command === undefined ? {} : { Cmd: [...command] }),
    ...(stop === undefined ? {} : { StopSignal: stop.signal, StopTimeout: stop.timeoutSeconds }),
    ...(hostname === undefined ? {} : { Hostname: hostname }),
    Env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
    Labels: { ...request.labels },
    ExposedPorts: Object.fromEntries(request.ports.map(({ container }) => [`${container}/tcp`, {}])),
    HostConfig: {
      // The types ask for a driver's options, which the daemon does not.
      Mounts: request.mounts.map(mountBody) as MountSettings[],
      Tmpfs: { ...request.memoryFolders },
      NetworkMode: request.networkId,
      PortBindings: Object.fromEntries(
        request.ports.map(({ address, host, container }) => [
          `${container}/tcp`,
          [{ HostIp: address, HostPort: String(host) }],
        ]),
      ),
      RestartPolicy: { Name: request.restart, MaximumRetryCount: 0 },
      ...(shmBytes === undefined ? {} : { ShmSize: shmBytes }),
      ...(init === undefined ? {} : { Init: init }),
      ...(resolver === undefined ? {} : { Dns: [...resolver.servers], DnsOptions: [...resolver.options] }),
      ...(limits === undefined
        ? {}
        : {
            Memory: limits.memoryBytes,
            // As much as the memory: no swap.
            MemorySwap: limits.memoryBytes,
            NanoCpus: Math.round(limits.cpus * 1e9),
            PidsLimit: limits.pids,
          }),
      ReadonlyRootfs: request.readOnlyRoot,
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

/** The daemon leaves out what is false, and what is asked is compared with what it shows. */
function mountBody(mount: ContainerMount): object {
  switch (mount.type) {
    case 'volume':
      return { Type: 'volume', Source: mount.name, Target: mount.target };
    case 'anonymous':
      return {
        Type: 'volume',
        Target: mount.target,
        VolumeOptions: { ...(mount.noCopy ? { NoCopy: true } : {}), Labels: { ...mount.labels } },
      };
    case 'folder':
      return {
        Type: 'bind',
        Source: mount.source,
        Target: mount.target,
        ...(mount.readOnly ? { ReadOnly: true } : {}),
      };
  }
}

/**
 * One sentence per difference; empty when the container is exactly what was asked for.
 * @param networkNames id → name, of the networks that were asked for: before its first start a container is not attached
 *   yet, and the daemon shows its networks by their names, without an id
 */
export function containerDifferences(
  request: ContainerRequest,
  found: ContainerInspectInfo,
  networkNames: ReadonlyMap<string, string>,
): readonly string[] {
  const { name, Image, Env, NetworkingConfig: _network, HostConfig, Labels, ...config } = createBody(request);
  return [
    ...differing(`/${name ?? ''}`, found.Name, 'name'),
    ...differing(Image, found.Image, 'image'),
    ...differing(Labels, found.Config.Labels, 'configuration Labels'),
    // What people wrote, a command above all, can hold what is not everybody's to read.
    ...fieldsDiffering(config, found.Config).map((field) => `configuration ${field} differs`),
    ...differing(withoutSwap(HostConfig, found), found.HostConfig, 'host configuration'),
    ...(Env ?? []).filter((one) => !found.Config.Env.includes(one)).map((one) => `environment lacks ${nameIn(one)}`),
    ...differing(wantedMounts(request), foundMounts(found, request), 'mounts'),
    ...networkDifferences(request, found, networkNames),
  ];
}

/** A kernel that does not count swap has the daemon say so and put -1 there; the memory itself stays limited. */
function withoutSwap(wanted: object | undefined, found: ContainerInspectInfo): object {
  const { MemorySwap, ...rest } = (wanted ?? {}) as { readonly MemorySwap?: number };
  return MemorySwap === undefined || found.HostConfig.MemorySwap === -1 ? rest : { ...rest, MemorySwap };
}

function nameIn(assignment: string): string {
  return assignment.slice(0, assignment.indexOf('='));
}

/** What is really mounted, one line each: the request's list alone does not say that it came about. */
function wantedMounts({ mounts }: ContainerRequest): readonly string[] {
  return mounts
    .map((mount) => {
      switch (mount.type) {
        case 'volume':
          return `volume ${mount.name} at ${mount.target}, writable`;
        case 'anonymous':
          return `a volume of its own at ${mount.target}, writable`;
        case 'folder':
          return `bind ${mount.source} at ${mount.target}, ${mount.readOnly ? 'read-only' : 'writable'}`;
      }
    })
    .sort();
}

function foundMounts(found: ContainerInspectInfo, { mounts }: ContainerRequest): readonly string[] {
  const anonymous = new Set(mounts.filter(({ type }) => type === 'anonymous').map(({ target }) => target));
  return found.Mounts.filter((mount) => mount.Type !== 'tmpfs')
    .map(({ Type, Name, Source, Destination, RW }) => {
      const what =
        Type === 'volume' && anonymous.has(Destination) && ANONYMOUS.test(Name ?? '')
          ? 'a volume of its own'
          : `${Type} ${Name ?? Source}`;
      return `${what} at ${Destination}, ${RW ? 'writable' : 'read-only'}`;
    })
    .sort();
}

/** The name that the daemon gives to a volume that nobody named. */
const ANONYMOUS = /^[0-9a-f]{64}$/;

function networkDifferences(
  { networkId, aliases, furtherNetworkIds = [] }: ContainerRequest,
  found: ContainerInspectInfo,
  networkNames: ReadonlyMap<string, string>,
): readonly string[] {
  const there = Object.entries(found.NetworkSettings.Networks);
  const wanted = [networkId, ...furtherNetworkIds];
  const endpointIn = (id: string): (typeof there)[number] | undefined =>
    there.find(([name, { NetworkID }]) => (NetworkID === '' ? name === networkNames.get(id) : NetworkID === id));
  if (there.length !== wanted.length || wanted.some((id) => endpointIn(id) === undefined))
    return [`networks are ${there.map(([name]) => name).join(', ')}`];
  const known = (endpointIn(networkId)?.[1].Aliases ?? []) as readonly string[];
  return aliases.filter((alias) => !known.includes(alias)).map((alias) => `the network does not know it as ${alias}`);
}

function fieldsDiffering(wanted: object, found: object): readonly string[] {
  const there = found as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).flatMap(([field, value]) =>
    differing(value, there[field], field).length === 0 ? [] : [field],
  );
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
