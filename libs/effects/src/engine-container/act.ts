/**
 * The engine's container, created and not started. What the daemon then shows is compared with what was asked: a daemon that
 * dies in the middle leaves one without its volume or network, under the right name and with the right labels.
 */
import { statSync } from 'node:fs';
import type { ContainerInfo, ContainerRequest, Daemon } from '#docker';
import { containerDifferences, isDaemonError } from '#docker';
import { engineContainerRequest, imageFault } from '#engines';
import type { Mark } from '#kernel';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import type { TimeLeft } from '../daemon-act.ts';
import { withDaemon } from '../daemon-act.ts';
import { carriesMark, isOurs } from '../docker-marks.ts';

export const act: Act<'engine-container'> = (context, spec) =>
  withDaemon(context, 'engine-container', async (daemon, time) => {
    const { installation, engine, inHand } = context;
    const mark: Mark = { installation, kind: 'engine', id: spec.engineId, token: inHand.token };
    const image = await daemon.image(spec.imageId);
    if (image === undefined) return refused('image_unavailable', `image ${spec.imageId} is no longer on the host`);
    const fault = imageFault(image);
    if (fault !== undefined) return refused('image_unusable', `image ${spec.imageId} cannot be an engine's: ${fault}`);
    // A mount makes a volume that is missing, without labels: then it would be nobody's.
    const volume = await daemon.volume(spec.volumeName);
    if (volume === undefined || !isOurs(volume.labels, { ...mark, kind: 'volume' }))
      return refused('foreign_object', `volume ${spec.volumeName} is not there, or is not ours`);
    const request = engineContainerRequest({
      installation,
      engineId: spec.engineId,
      name: spec.name,
      token: inHand.token,
      image,
      networkId: spec.networkId,
      volumeName: spec.volumeName,
      port: spec.port,
      confFolder: engine.confFolder,
      socketFolder: engine.socketFolder,
      groupId: statSync(engine.confFolder).gid,
    });
    const container = await create(daemon, request, time);
    if (container === undefined)
      return unknown(
        'container_missing',
        `the name ${request.name} is taken, or was just given, and no container has it`,
      );
    if (!carriesMark(container.Config.Labels, mark))
      return refused('foreign_object', `container ${request.name} exists and is not ours`);
    const networks = await daemon.networks();
    const differences = containerDifferences(request, container, new Map(networks.map(({ id, name }) => [id, name])));
    return differences.length === 0
      ? applied({ containerId: container.Id })
      : removePartial(daemon, container.Id, differences);
  });

/** @returns what has the name now: what was just made, or what was there; undefined when nothing shows in time */
async function create(daemon: Daemon, request: ContainerRequest, time: TimeLeft): Promise<ContainerInfo | undefined> {
  try {
    return await daemon.container(await daemon.createContainer(request));
  } catch (error) {
    if (!isDaemonError(error, 'conflict')) throw error;
  }
  // The name is taken, and can be so for a while before anything has it: a create may be under way (B054).
  for (;;) {
    const there = await daemon.container(request.name);
    if (there !== undefined || !(await time.pause())) return there;
  }
}

/** It is ours by its token and not what was asked for: it goes by its id, and with it whatever it could have become. */
async function removePartial(daemon: Daemon, id: string, differences: readonly string[]): Promise<ActResult> {
  await daemon.removeContainer(id);
  const listed = await daemon.containers();
  const what = `the container came out different from what was asked: ${differences.join('; ')}`;
  return listed.some((container) => container.id === id)
    ? unknown('container_differs', `${what}; it could not be removed`)
    : refused('container_differs', what);
}
