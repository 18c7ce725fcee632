/**
 * The engine's volume. The daemon answers a create of a name that is taken as if it had made it, with the labels of the
 * first: the labels are the proof, not the answer.
 */
import { attemptName } from '#engines';
import type { Mark } from '#kernel';
import { markLabels } from '#kernel';
import type { Act } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { carriesMark } from '../docker-marks.ts';

export const act: Act<'volume'> = (context, { engineId }) =>
  withDaemon(context, 'volume', async (daemon) => {
    const { installation, inHand } = context;
    const name = attemptName(inHand.token);
    const mark: Mark = { installation, kind: 'volume', id: engineId, token: inHand.token };
    await daemon.createVolume(name, markLabels(mark));
    const volume = await daemon.volume(name);
    if (volume === undefined) return unknown('volume_missing', `volume ${name} is not there after it was created`);
    return carriesMark(volume.labels, mark)
      ? applied({ volumeName: name })
      : refused('foreign_object', `volume ${name} exists and is not ours`);
  });
