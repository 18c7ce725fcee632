/** An engine's container in an environment's network, as the daemon shows it; both are compared with their marks. */
import type { ContainerInfo, Daemon, NetworkDetail } from '#docker';
import type { EffectSpecs } from '#protocol';
import type { ActContext, ActResult } from './contract.ts';
import { refused } from './contract.ts';
import { isOurs } from './docker-marks.ts';

export interface Membership {
  /** Undefined: gone. */
  readonly container: ContainerInfo | undefined;
  readonly network: NetworkDetail | undefined;
  /** What the container says about the network, by the name that the network has or had. */
  readonly said:
    { readonly networkName: string; readonly aliases: readonly string[]; readonly address: string } | undefined;
  /** The network knows an endpoint of the container, which may have been left behind. */
  readonly endpoint: 'none' | 'its own' | 'left behind';
}

export async function lookAtMembership(
  daemon: Daemon,
  { networkId, engineContainerId }: EffectSpecs['join-network'],
): Promise<Membership> {
  const container = await daemon.container(engineContainerId);
  const network = await daemon.network(networkId);
  const networks = Object.entries(container?.NetworkSettings.Networks ?? {});
  // A container that rests shows no id of a network that it will be connected to.
  const settings = networks.find(([name, { NetworkID }]) => NetworkID === networkId || name === network?.name);
  const said =
    settings === undefined
      ? undefined
      : { networkName: settings[0], aliases: aliasesOf(settings[1]), address: settings[1].IPAddress };
  const endpoints = network?.endpoints ?? [];
  const own = endpoints.some(({ containerId }) => containerId === engineContainerId);
  const left = endpoints.some((endpoint) => isLeftBehind(endpoint, container));
  return { container, network, said, endpoint: own ? 'its own' : left ? 'left behind' : 'none' };
}

/** The daemon says `null` for none. */
function aliasesOf(endpoint: { readonly Aliases?: readonly string[] | null }): readonly string[] {
  return endpoint.Aliases ?? [];
}

/** Undefined where both are ours, or gone. */
export function foreign(
  { installation, engine }: ActContext,
  { environmentId, networkId, engineContainerId }: EffectSpecs['join-network'],
  { container, network }: Membership,
): ActResult | undefined {
  if (network !== undefined && !isOurs(network.labels, { installation, kind: 'network', id: environmentId }))
    return refused('foreign_object', `network ${networkId} is not ours`);
  if (
    container !== undefined &&
    !isOurs(container.Config.Labels, { installation, kind: 'engine', id: engine.engineId })
  )
    return refused('foreign_object', `container ${engineContainerId} is not ours`);
  return undefined;
}

/** What of an engine is in a network: what a call that takes it out names. */
interface EngineInNetwork {
  /** Id; the name that the endpoint has where no container is left. */
  readonly container: string;
  readonly networkName: string;
}

/**
 * Engines of this installation that are in a network, that say they are, or that left an endpoint there; and endpoints of
 * containers that there no longer are, which are nobody's.
 */
export async function enginesIn(
  daemon: Daemon,
  installation: string,
  { id, name }: { readonly id: string; readonly name: string | undefined },
): Promise<readonly EngineInNetwork[]> {
  const endpoints = (await daemon.network(id))?.endpoints ?? [];
  const found: EngineInNetwork[] = [];
  for (const listed of await daemon.containers()) {
    if (!isOurs(listed.labels, { installation, kind: 'engine', id: listed.labels['surefoot.id'] ?? '' })) continue;
    const container = await daemon.container(listed.id);
    const networks = Object.entries(container?.NetworkSettings.Networks ?? {});
    const said = networks.find(([networkName, { NetworkID }]) => NetworkID === id || networkName === name);
    const isThere = endpoints.some(
      (endpoint) => endpoint.containerId === listed.id || isLeftBehind(endpoint, container),
    );
    if (said !== undefined || isThere) found.push({ container: listed.id, networkName: said?.[0] ?? name ?? id });
  }
  for (const { name: container, containerId } of endpoints)
    if (containerId === undefined && (await daemon.container(container)) === undefined)
      found.push({ container, networkName: name ?? id });
  return found;
}

function isLeftBehind(
  { name, containerId }: NetworkDetail['endpoints'][number],
  container: ContainerInfo | undefined,
): boolean {
  return containerId === undefined && container?.Name === `/${name}`;
}
