/** The container of an engine: what is asked for, which decides what is compared. */
import type { ContainerRequest, ImageInfo } from '#docker';
import type { Mark } from '#kernel';
import { markLabels, markText } from '#kernel';
import { attemptName, CONTAINER_CONF, CONTAINER_PORT, CONTAINER_SOCKETS, engineContainerName } from './layout.ts';

/** Parallel queries and VACUUM use it; the daemon's 64 MB are not enough (FIELD-CASES B074). */
const SHM_BYTES = 256 * 1024 * 1024;

/** Longer than any fast shutdown that is not stuck; SIGINT is PostgreSQL's fast shutdown. */
export const STOP_TIMEOUT_SECONDS = 60;

export interface EngineContainer {
  readonly installation: string;
  readonly engineId: string;
  readonly name: string;
  readonly token: string;
  readonly image: ImageInfo;
  readonly networkId: string;
  readonly volumeName: string;
  readonly port: number;
  readonly confFolder: string;
  readonly socketFolder: string;
  /** Group of the mounted folders: with it the server reads files that only the worker's user and group may. */
  readonly groupId: number;
}

export function engineContainerRequest(engine: EngineContainer): ContainerRequest {
  const { installation, engineId, token, volumeName } = engine;
  const target = volumeTarget(engine.image);
  return {
    name: engineContainerName(token),
    imageId: engine.image.id,
    user: `postgres:${engine.groupId}`,
    entrypoint: ['bash', `${CONTAINER_CONF}/entrypoint.sh`],
    command: [],
    env: { SUREFOOT_VOLUME: target, SUREFOOT_VOLUME_MARK: markText(volumeMark(installation, engineId, volumeName)) },
    labels: { ...markLabels({ installation, kind: 'engine', id: engineId, token }), 'surefoot.engine': engine.name },
    mounts: [
      { type: 'volume', name: volumeName, target },
      { type: 'folder', source: engine.confFolder, target: CONTAINER_CONF, readOnly: true },
      { type: 'folder', source: engine.socketFolder, target: CONTAINER_SOCKETS, readOnly: false },
    ],
    readOnlyRoot: true,
    // The root is read-only; the server's key goes there.
    memoryFolders: { '/tmp': 'rw,noexec,nosuid,nodev,size=64m,mode=1777' },
    networkId: engine.networkId,
    aliases: ['db'],
    ports: [{ address: '127.0.0.1', host: engine.port, container: CONTAINER_PORT }],
    restart: 'unless-stopped',
    shmBytes: SHM_BYTES,
    stop: { signal: 'SIGINT', timeoutSeconds: STOP_TIMEOUT_SECONDS },
    log: { maxSize: '10m', maxFiles: 3 },
  };
}

/** The line that the entrypoint writes into a new volume, and that it must find in an old one. */
function volumeMark(installation: string, engineId: string, volumeName: string): Mark {
  return { installation, kind: 'volume', id: engineId, token: volumeName.slice(attemptName('').length) };
}

/**
 * Where the volume goes: where the image declares its own, since that folder has the owner the server needs, and since any
 * other place would leave the declared one to an anonymous volume that dies with the container (FIELD-CASES B062: the
 * official image moved it with version 18).
 */
function volumeTarget(image: ImageInfo): string {
  return image.volumes[0] ?? '/var/lib/postgresql/data';
}

/** Why an image cannot be an engine's; undefined when it can. */
export function imageFault({ volumes }: ImageInfo): string | undefined {
  return volumes.length <= 1 ? undefined : `it declares several volumes, and we would have one: ${volumes.join(', ')}`;
}
