/**
 * Removes a service's container by its exact id, then whatever else carries its labels (half-made containers of other
 * tries, volumes that a removal left), and waits until all of it is absent (FIELD-CASES B056, B064).
 */
import type { Daemon } from '#docker';
import { isAnswer } from '#docker';
import type { Act } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { removeServiceObjects } from '../service-objects.ts';

/**
 * A service that is being asked to end can finish a request and tell others; its database goes next, so more time is worth
 * nothing. One that does not listen costs a delete this long.
 */
const STOP_SECONDS = 5;

export const act: Act<'remove-service'> = (context, { serviceId, containerId }) =>
  withDaemon(context, 'remove-service', async (daemon, time) => {
    const { installation } = context;
    const container = await daemon.container(containerId);
    if (container !== undefined && !isOurs(container.Config.Labels, { installation, kind: 'service', id: serviceId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    if (container?.State.Running === true) await stop(daemon, containerId);
    const removed = await removeServiceObjects(daemon, time, { installation, serviceId });
    return removed.outcome === 'applied' ? applied({ serviceId, ...removed.facts }) : removed;
  });

/** Only a courtesy: what cannot be stopped is removed all the same. */
async function stop(daemon: Daemon, containerId: string): Promise<void> {
  try {
    await daemon.stopContainer(containerId, STOP_SECONDS);
  } catch (error) {
    if (!isAnswer(error)) throw error;
  }
}
