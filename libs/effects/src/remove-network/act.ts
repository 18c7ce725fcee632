/** Removes the engine's network by its exact id. */
import type { Act } from '../contract.ts';
import { refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { removeUntilAbsent } from '../remove-until-absent.ts';

export const act: Act<'remove-network'> = (context, { engineId, networkId }) =>
  withDaemon(context, async (daemon, time) => {
    const { installation } = context;
    const network = (await daemon.networks()).find(({ id }) => id === networkId);
    if (network !== undefined && !isOurs(network.labels, { installation, kind: 'network', id: engineId }))
      return refused('foreign_object', `network ${networkId} is not ours`);
    return removeUntilAbsent(
      time,
      async () => (await daemon.networks()).some(({ id }) => id === networkId),
      () => daemon.removeNetwork(networkId),
    );
  });
