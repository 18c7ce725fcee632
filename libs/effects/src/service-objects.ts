/** What a service has in the daemon: containers and unnamed volumes with our labels, which alone find all of it. */
import type { Daemon } from '#docker';
import { isAnswer } from '#docker';
import type { ActResult } from './contract.ts';
import type { TimeLeft } from './daemon-act.ts';
import { isOurs } from './docker-marks.ts';
import { removeUntilAbsent } from './remove-until-absent.ts';

interface Whose {
  readonly installation: string;
  readonly serviceId: string;
  /** Of one attempt only. */
  readonly token?: string;
}

type Labels = Readonly<Record<string, string>>;

function carries(labels: Labels, kind: 'service' | 'volume', { installation, serviceId, token }: Whose): boolean {
  return (
    isOurs(labels, { installation, kind, id: serviceId }) && (token === undefined || labels['surefoot.token'] === token)
  );
}

export async function serviceVolumes(daemon: Daemon, whose: Whose): Promise<readonly string[]> {
  const volumes = await daemon.volumes();
  return volumes.filter(({ labels }) => carries(labels, 'volume', whose)).map(({ name }) => name);
}

async function serviceContainers(daemon: Daemon, whose: Whose): Promise<readonly string[]> {
  const containers = await daemon.containers();
  return containers.filter(({ labels }) => carries(labels, 'service', whose)).map(({ id }) => id);
}

/**
 * Removes the containers, with their volumes, and then the volumes that are left: a daemon that fails in between leaves some
 * (FIELD-CASES B069). Each is gone when a listing no longer shows it (B064).
 */
export async function removeServiceObjects(daemon: Daemon, time: TimeLeft, whose: Whose): Promise<ActResult> {
  const containers = await removeAll(
    time,
    () => serviceContainers(daemon, whose),
    (id) => daemon.removeContainer(id),
  );
  if (containers.outcome !== 'applied') return containers;
  const volumes = await removeAll(
    time,
    () => serviceVolumes(daemon, whose),
    (name) => daemon.removeVolume(name),
  );
  if (volumes.outcome !== 'applied') return volumes;
  // Volumes mostly go with their container.
  return containers.facts['alreadyAbsent'] === true ? volumes : containers;
}

async function removeAll(
  time: TimeLeft,
  list: () => Promise<readonly string[]>,
  remove: (one: string) => Promise<void>,
): Promise<ActResult> {
  let listed: readonly string[] = [];
  return removeUntilAbsent(
    time,
    async () => {
      listed = await list();
      return listed.length > 0;
    },
    async () => {
      let hindrance: Error | undefined;
      for (const one of listed) {
        try {
          await remove(one);
        } catch (error) {
          // One that is in the way of its own removal keeps none of the others.
          if (!isAnswer(error)) throw error;
          hindrance = error;
        }
      }
      if (hindrance !== undefined) throw hindrance;
    },
  );
}
