/**
 * The network through which an environment's published services are reached: Docker publishes no port of a container that
 * is on closed networks only. Replies go out through it; of their own accord its services reach the host alone, which
 * set-up's firewall rule keeps them from.
 */
import type { Act } from '../contract.ts';
import { makeNetwork, ONE_WAY } from '../own-network.ts';

export const act: Act<'port-network'> = (context, { environmentId, pool }) =>
  makeNetwork(context, 'port-network', environmentId, pool, ONE_WAY);
