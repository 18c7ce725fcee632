/**
 * The engine's own network: a bridge with an explicit small subnet out of our pool, so that the daemon's default pools,
 * which are used up at about thirty networks, are not touched (FIELD-CASES B067).
 */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { Daemon, NetworkInfo } from '#docker';
import { freeSubnet, isDaemonError, routedNetworks } from '#docker';
import { attemptName } from '#engines';
import type { Mark } from '#kernel';
import { markLabels } from '#kernel';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { carriesMark } from '../docker-marks.ts';

const PREFIX_LENGTH = 28;
/** Somebody else can take a subnet between our look and our call; each time one is lost, the next is tried. */
const TRIES = 8;

export const act: Act<'network'> = (context, { engineId, pool }) =>
  withDaemon(context, async (daemon, time) => {
    const { installation, inHand } = context;
    const name = attemptName(inHand.token);
    const mark: Mark = { installation, kind: 'network', id: engineId, token: inHand.token };
    const lost: string[] = [];
    for (let made = false; ;) {
      // Also when the time ran out while it was being made: only this look tells what is there.
      const networks = await daemon.networks();
      const there = networks.find((network) => network.name === name);
      if (there !== undefined) return judge(there, mark);
      if (made) {
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
      made = await create(daemon, name, free, mark);
      if (!made) lost.push(free.subnet);
    }
  });

/** @returns false when the daemon knows of an overlap that we did not see; true when it is made, or its name is taken */
async function create(
  daemon: Daemon,
  name: string,
  { subnet, gateway }: { readonly subnet: string; readonly gateway: string },
  mark: Mark,
): Promise<boolean> {
  try {
    await daemon.createNetwork({ name, subnet, gateway, labels: markLabels(mark) });
    return true;
  } catch (error) {
    if (isDaemonError(error, 'conflict')) return true;
    if (isDaemonError(error, 'refused', 'failed') && /overlap/i.test(error.message)) return false;
    throw error;
  }
}

/** Addresses on this host from which the engine sees the host itself come: a published port is reached by the gateway. */
function judge(network: NetworkInfo, mark: Mark): ActResult {
  if (!carriesMark(network.labels, mark))
    return refused('foreign_object', `network ${network.name} exists and is not ours`);
  return applied({
    networkId: network.id,
    subnet: network.subnets[0] ?? '',
    localCidrs: network.gateways.map((gateway) => `${gateway}/32`),
  });
}

/** Interfaces and routes of the host: networks of other daemons, of VPNs, of the neighbourhood. */
async function hostNetworks(): Promise<readonly string[]> {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return [
    ...interfaces.flatMap(({ cidr }) => cidr ?? []),
    ...routedNetworks(await readFile('/proc/net/route', 'utf8')),
  ];
}
