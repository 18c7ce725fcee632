/**
 * A network of ours: a bridge with an explicit small subnet out of our pool, so that the daemon's default pools, which are
 * used up at about thirty networks, are not touched (FIELD-CASES B067).
 *
 * What the daemon answers ends the call, a failure too, so the look that follows is final. Only an answer that does not come
 * leaves the outcome unknown.
 */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { Daemon, NetworkInfo } from '#docker';
import { DaemonError, freeSubnet, isAnswer, isDaemonError, isWithin, routedNetworks } from '#docker';
import { attemptName } from '#engines';
import type { JsonObject, Mark } from '#kernel';
import { markLabels } from '#kernel';
import type { ActContext, ActResult } from './contract.ts';
import { applied, refused, unknown } from './contract.ts';
import { withDaemon } from './daemon-act.ts';
import { carriesMark, isOurs } from './docker-marks.ts';
import { enginesIn } from './engine-membership.ts';
import { removeUntilAbsent } from './remove-until-absent.ts';

const PREFIX_LENGTH = 28;
/** Somebody else can take a subnet between our look and our call; each time one is lost, the next is tried. */
const TRIES = 8;

export interface NetworkShape {
  readonly internal: boolean;
  readonly options: Readonly<Record<string, string>>;
}

/** The host has no address on the bridge, so that nothing on it reaches the host. */
const INHIBIT_IPV4 = 'com.docker.network.bridge.inhibit_ipv4';
const MASQUERADE = 'com.docker.network.bridge.enable_ip_masquerade';

/** Of an engine: its port is published through it. */
export const REACHED_FROM_HOST: NetworkShape = { internal: false, options: {} };
/** Of an environment: it leads nowhere. */
export const CLOSED: NetworkShape = { internal: true, options: { [INHIBIT_IPV4]: 'true' } };
/** Of published services: the host reaches in, and what goes out has an address that nobody answers. */
export const ONE_WAY: NetworkShape = { internal: false, options: { [MASQUERADE]: 'false' } };

/** @param ownerId the engine's or environment's: part of the network's mark */
export function makeNetwork(
  context: ActContext,
  kind: 'network' | 'port-network',
  ownerId: string,
  pool: string,
  shape: NetworkShape,
  more: (network: NetworkInfo) => JsonObject = () => ({}),
): Promise<ActResult> {
  return withDaemon(context, kind, async (daemon, time) => {
    const { installation, inHand } = context;
    const name = attemptName(inHand.token);
    const mark: Mark = { installation, kind: 'network', id: ownerId, token: inHand.token };
    const lost: string[] = [];
    for (let made: Made = 'not yet'; ;) {
      // Also when the time ran out while it was being made: only this look tells what is there.
      const networks = await daemon.networks();
      const there = networks.find((network) => network.name === name);
      if (there !== undefined) return judge(daemon, there, mark, pool, shape, more);
      if (typeof made === 'object') return refused('daemon_failed', `the network was not made: ${made.message}`);
      if (made === 'made') {
        if (await time.pause()) continue;
        return unknown('network_not_listed', `the daemon says that network ${name} exists, and does not list it`);
      }
      if (lost.length >= TRIES || time.left() === 0)
        return refused(
          'network_pool_exhausted',
          `of ${pool} the daemon refused, though it looked free: ${lost.join(', ')}`,
        );
      const taken = [...networks.flatMap((network) => network.subnets), ...(await hostNetworks()), ...lost];
      const free = freeSubnet(pool, taken, PREFIX_LENGTH);
      if (free === undefined)
        return refused('network_pool_exhausted', `every /${PREFIX_LENGTH} of ${pool} overlaps a network of this host`);
      made = await create(daemon, { name, ...free, ...shape, labels: markLabels(mark) });
      if (made === 'overlaps') lost.push(free.subnet);
    }
  });
}

/** `overlaps`: the daemon knows of an overlap that we did not see. `made`: also when the name is taken. */
type Made = 'not yet' | 'made' | 'overlaps' | DaemonError;

async function create(daemon: Daemon, request: Parameters<Daemon['createNetwork']>[0]): Promise<Made> {
  try {
    await daemon.createNetwork(request);
    return 'made';
  } catch (error) {
    if (isDaemonError(error, 'conflict')) return 'made';
    if (!isDaemonError(error, 'refused', 'failed')) throw error;
    return /overlap/i.test(error.message) ? 'overlaps' : error;
  }
}

async function judge(
  daemon: Daemon,
  network: NetworkInfo,
  mark: Mark,
  pool: string,
  shape: NetworkShape,
  more: (network: NetworkInfo) => JsonObject,
): Promise<ActResult> {
  if (!carriesMark(network.labels, mark))
    return refused('foreign_object', `network ${network.name} exists and is not ours`);
  const differences = networkDifferences(network, pool, shape);
  return differences.length === 0
    ? applied({ networkId: network.id, subnet: network.subnets[0] ?? '', ...more(network) })
    : removePartial(daemon, network.id, differences);
}

/** Options that open or close a network are compared; a daemon adds others of its own. */
function networkDifferences(
  network: NetworkInfo,
  pool: string,
  { internal, options }: NetworkShape,
): readonly string[] {
  return [
    ...(network.internal === internal ? [] : [`internal is ${network.internal}`]),
    ...[INHIBIT_IPV4, MASQUERADE]
      .filter((option) => network.options[option] !== options[option])
      .map((option) => `${option} is ${network.options[option] ?? 'not set'}`),
    ...(network.subnets.length === 1 && network.subnets.every((subnet) => isWithin(pool, subnet))
      ? []
      : [`its subnets are ${network.subnets.join(', ')}`]),
  ];
}

/** It is ours by its token and not what was asked for: it goes by its id, and with it whatever it could have become. */
async function removePartial(daemon: Daemon, id: string, differences: readonly string[]): Promise<ActResult> {
  try {
    await daemon.removeNetwork(id);
  } catch (error) {
    // The listing tells.
    if (!isDaemonError(error, 'absent', 'conflict', 'refused', 'failed')) throw error;
  }
  const what = `the network came out different from what was asked: ${differences.join('; ')}`;
  return (await daemon.networks()).some((network) => network.id === id)
    ? unknown('network_differs', `${what}; it could not be removed`)
    : refused('network_differs', what);
}

/** Interfaces and routes of the host: networks of other daemons, of VPNs, of the neighbourhood. */
async function hostNetworks(): Promise<readonly string[]> {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return [
    ...interfaces.flatMap(({ cidr }) => cidr ?? []),
    ...routedNetworks(await readFile('/proc/net/route', 'utf8')),
  ];
}

/**
 * By its exact id.
 * @param engines `leave`: those of this installation that are in it, or were and left something behind, are taken out of it.
 *   A join that was interrupted may have come about, also after the engine was taken out; nobody else's container is
 *   disconnected, and somebody who only looks around may be gone in a moment
 */
export function removeOwnNetwork(
  context: ActContext,
  kind: 'remove-network' | 'remove-port-network',
  ownerId: string,
  networkId: string,
  engines: 'stay' | 'leave',
): Promise<ActResult> {
  return withDaemon(context, kind, async (daemon, time) => {
    const { installation } = context;
    const network = (await daemon.networks()).find(({ id }) => id === networkId);
    if (network !== undefined && !isOurs(network.labels, { installation, kind: 'network', id: ownerId }))
      return refused('foreign_object', `network ${networkId} is not ours`);
    let found: Found = { isListed: false, engines: [] };
    return removeUntilAbsent(
      time,
      async () => {
        found = {
          isListed: (await daemon.networks()).some(({ id }) => id === networkId),
          engines:
            engines === 'leave' ? await enginesIn(daemon, installation, { id: networkId, name: network?.name }) : [],
        };
        return found.isListed || found.engines.length > 0;
      },
      async () => {
        // Of a network that is gone the daemon goes by the name.
        for (const { container, networkName } of found.engines)
          await disconnect(daemon, found.isListed ? networkId : networkName, container);
        if (found.isListed) await removeNetwork(daemon, networkId);
      },
      (hindrance) => context.progress(`waits for network ${network?.name ?? networkId}: ${hindrance}`),
    );
  });
}

interface Found {
  readonly isListed: boolean;
  readonly engines: Awaited<ReturnType<typeof enginesIn>>;
}

/** What it says does not matter: the removal that follows, or the next look, tells. */
async function disconnect(daemon: Daemon, network: string, container: string): Promise<void> {
  try {
    await daemon.disconnect(network, container);
  } catch (error) {
    if (!isAnswer(error)) throw error;
  }
}

/** @throws DaemonError, with the names of those that are in the way */
async function removeNetwork(daemon: Daemon, id: string): Promise<void> {
  try {
    await daemon.removeNetwork(id);
  } catch (error) {
    if (!isAnswer(error)) throw error;
    const endpoints = (await daemon.network(id))?.endpoints ?? [];
    if (endpoints.length === 0) throw error;
    const names = endpoints.map(({ name }) => name).join(', ');
    throw new DaemonError(error.kind, `${error.message}; in it: ${names}`, { cause: error, ofChange: true });
  }
}
