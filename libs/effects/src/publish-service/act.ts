/** From here on the daemon starts the service again when it ends, and with itself. By its exact id. */
import type { ContainerInfo, Daemon, DaemonError } from '#docker';
import { isAnswer } from '#docker';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';

const POLICY = 'unless-stopped';

export const act: Act<'publish-service'> = (context, { serviceId, containerId }) =>
  withDaemon(context, 'publish-service', async (daemon) => {
    const { installation } = context;
    const before = await daemon.container(containerId);
    if (before?.Id !== containerId) return refused('service_missing', `there is no container ${containerId}`);
    if (!isOurs(before.Config.Labels, { installation, kind: 'service', id: serviceId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    const ended = whyEnded(before);
    if (ended !== undefined) return ended;
    const failure = await setPolicy(daemon, containerId);
    const after = await daemon.container(containerId);
    if (after === undefined) return refused('service_missing', `container ${containerId} is gone`);
    if (after.HostConfig.RestartPolicy?.Name === POLICY) return whyEnded(after) ?? applied({});
    const what = failure?.message ?? `its restart policy is still ${after.HostConfig.RestartPolicy?.Name ?? 'none'}`;
    return refused('policy_not_set', `the daemon does not keep the service running: ${what}`);
  });

/** @returns what the daemon said instead of setting it */
async function setPolicy(daemon: Daemon, containerId: string): Promise<DaemonError | undefined> {
  try {
    await daemon.setRestartPolicy(containerId, POLICY);
    return undefined;
  } catch (error) {
    if (isAnswer(error)) return error;
    throw error;
  }
}

/** One that ended before it was published is not started by its policy. */
function whyEnded({ State }: ContainerInfo): ActResult | undefined {
  if (State.Running || State.Restarting) return undefined;
  return refused('service_exits', `the service has ended, with exit code ${State.ExitCode}`);
}
