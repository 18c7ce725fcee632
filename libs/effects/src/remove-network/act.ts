/** Removes an engine's or an environment's network by its exact id. */
import type { Act } from '../contract.ts';
import { removeOwnNetwork } from '../own-network.ts';

export const act: Act<'remove-network'> = (context, { owner, networkId }) =>
  removeOwnNetwork(context, 'remove-network', owner.id, networkId, owner.type === 'environment' ? 'leave' : 'stay');
