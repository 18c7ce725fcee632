/** Removes the engine's container by its exact id, whatever state it is in, and waits until it is absent. */
import type { Act } from '../contract.ts';
import { refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { removeUntilAbsent } from '../remove-until-absent.ts';

export const act: Act<'remove-container'> = (context, { engineId, containerId }) =>
  withDaemon(context, 'remove-container', async (daemon, time) => {
    const { installation } = context;
    const container = await daemon.container(containerId);
    if (container !== undefined && !isOurs(container.Config.Labels, { installation, kind: 'engine', id: engineId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    return removeUntilAbsent(
      time,
      async () => (await daemon.containers()).some(({ id }) => id === containerId),
      () => daemon.removeContainer(containerId),
    );
  });
