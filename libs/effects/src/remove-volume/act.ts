/** Removes the engine's volume by its name, which carries its attempt and is never used again. */
import type { Act } from '../contract.ts';
import { refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { removeUntilAbsent } from '../remove-until-absent.ts';

export const act: Act<'remove-volume'> = (context, { engineId, volumeName }) =>
  withDaemon(context, 'remove-volume', async (daemon, time) => {
    const { installation } = context;
    const volume = await daemon.volume(volumeName);
    if (volume !== undefined && !isOurs(volume.labels, { installation, kind: 'volume', id: engineId }))
      return refused('foreign_object', `volume ${volumeName} is not ours`);
    return removeUntilAbsent(
      time,
      async () => (await daemon.volumes()).some(({ name }) => name === volumeName),
      () => daemon.removeVolume(volumeName),
    );
  });
