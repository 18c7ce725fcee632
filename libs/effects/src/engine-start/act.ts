/**
 * Starts the engine's container by its exact id. The daemon reports some plain refusals as failures (a port that is taken is
 * a 500), but an answer of either kind ends the call: the look that follows is final.
 */
import type { Daemon } from '#docker';
import { type DaemonError, isDaemonError } from '#docker';
import { STOP_TIMEOUT_SECONDS } from '#engines';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { lastWords } from './last-words.ts';

export const act: Act<'engine-start'> = (context, { engineId, containerId }) =>
  withDaemon(context, 'engine-start', async (daemon) => {
    const { installation } = context;
    const before = await daemon.container(containerId);
    if (before?.Id !== containerId) return refused('engine_missing', `there is no container ${containerId}`);
    if (!isOurs(before.Config.Labels, { installation, kind: 'engine', id: engineId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    const failure = await start(daemon, containerId);
    const after = await daemon.container(containerId);
    if (after === undefined) return refused('engine_missing', `container ${containerId} is gone`);
    if (after.State.Running && !after.State.Restarting) return applied({ startedAt: after.State.StartedAt });
    return notRunning(daemon, containerId, failure);
  });

/** @returns what the daemon said instead of starting it */
async function start(daemon: Daemon, containerId: string): Promise<DaemonError | undefined> {
  try {
    await daemon.startContainer(containerId);
    return undefined;
  } catch (error) {
    if (isDaemonError(error, 'failed', 'refused', 'conflict')) return error;
    throw error;
  }
}

/** Brought to rest first: the restart policy would go on trying, and a refusal means that nothing comes of it later. */
async function notRunning(daemon: Daemon, containerId: string, failure: DaemonError | undefined): Promise<ActResult> {
  const words = await lastWords(daemon, containerId);
  await daemon.stopContainer(containerId, STOP_TIMEOUT_SECONDS);
  const rest = await daemon.container(containerId);
  if (rest?.State.Running === true) return unknown('engine_running', `container ${containerId} could not be stopped`);
  if (failure === undefined) return refused('engine_exits', `the engine ended as soon as it was started: ${words}`);
  const portTaken = /port is already allocated|address already in use/i.test(failure.message);
  return refused(portTaken ? 'port_taken' : 'engine_not_started', failure.message);
}
