/** An engine's own network, or an environment's: that one leads to its engine and its services and nowhere else. */
import type { NetworkInfo } from '#docker';
import type { JsonObject } from '#kernel';
import type { Act } from '../contract.ts';
import { CLOSED, makeNetwork, REACHED_FROM_HOST } from '../own-network.ts';

export const act: Act<'network'> = (context, { owner, pool }) =>
  owner.type === 'engine'
    ? makeNetwork(context, 'network', owner.id, pool, REACHED_FROM_HOST, localAddresses)
    : makeNetwork(context, 'network', owner.id, pool, CLOSED);

/** Addresses on this host from which the engine sees the host itself come: a published port is reached by the gateway. */
function localAddresses({ gateways }: NetworkInfo): JsonObject {
  return { localCidrs: gateways.map((gateway) => `${gateway}/32`) };
}
