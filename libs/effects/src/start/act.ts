/**
 * Starts a service's container by its exact id, once. The daemon reports some plain refusals as failures (a port that is
 * taken is a 500), but an answer of either kind ends the call: the look that follows is final. Nothing starts it later, since
 * its restart policy is `no`; one that is started again has been published, and the daemon may start it at any time.
 *
 * Applied means that it was started, also when it has ended since: `healthy` is the one that tells.
 */
import type { Daemon, DaemonError } from '#docker';
import { isAnswer } from '#docker';
import type { Act } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { codeOf } from '../daemon-said.ts';
import { isOurs } from '../docker-marks.ts';
import { redaction } from '../redaction.ts';

export const act: Act<'start'> = (context, { serviceId, containerId, again = false }) =>
  withDaemon(context, 'start', async (daemon) => {
    const { installation, secrets } = context;
    const before = await daemon.container(containerId);
    if (before?.Id !== containerId) return refused('service_missing', `there is no container ${containerId}`);
    if (!isOurs(before.Config.Labels, { installation, kind: 'service', id: serviceId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    // In a create, one that has ended was started under an earlier token, and is not to run a second time.
    const rests = before.State.Status === 'created' || (again && before.State.Status === 'exited');
    const failure = rests ? await start(daemon, containerId) : undefined;
    const after = await daemon.container(containerId);
    if (after === undefined) return refused('service_missing', `container ${containerId} is gone`);
    if (!rests || after.State.StartedAt !== before.State.StartedAt)
      return applied({ startedAt: after.State.StartedAt });
    const message = failure?.message ?? after.State.Error;
    return refused(
      codeOf(message, 'service_not_started'),
      `the service could not be started: ${redaction(secrets.files)(message)}`,
    );
  });

/** @returns what the daemon said instead of starting it */
async function start(daemon: Daemon, containerId: string): Promise<DaemonError | undefined> {
  try {
    await daemon.startContainer(containerId);
    return undefined;
  } catch (error) {
    if (isAnswer(error)) return error;
    throw error;
  }
}
