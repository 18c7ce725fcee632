/** Removes the network of an environment's published services by its exact id. */
import type { Act } from '../contract.ts';
import { removeOwnNetwork } from '../own-network.ts';

export const act: Act<'remove-port-network'> = (context, { environmentId, networkId }) =>
  removeOwnNetwork(context, 'remove-port-network', environmentId, networkId, 'stay');
