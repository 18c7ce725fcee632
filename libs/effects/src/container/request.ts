/** The container of a service: what is asked for, which decides what is compared. */
import type { ContainerRequest, ImageInfo, PublishedPort } from '#docker';
import type { Mark } from '#kernel';
import { markLabels } from '#kernel';
import type { EffectSpecs } from '#protocol';
import { SERVICE_FOLDER } from '#protocol';

export function serviceContainerName(token: string): string {
  return `surefoot-service-${token}`;
}

export function serviceMark(installation: string, serviceId: string, token: string): Mark {
  return { installation, kind: 'service', id: serviceId, token };
}

/** Volumes have no names of ours: the daemon removes a container's unnamed ones with it. These labels find them. */
function serviceVolumeMark(installation: string, serviceId: string, token: string): Mark {
  return { installation, kind: 'volume', id: serviceId, token };
}

export function serviceContainerRequest(
  { installation, token }: { readonly installation: string; readonly token: string },
  spec: EffectSpecs['container'],
  image: ImageInfo,
  ports: readonly PublishedPort[],
  init: boolean,
): ContainerRequest {
  const { serviceId, environmentId, name } = spec;
  const own = { 'surefoot.environment': environmentId, 'surefoot.service': name };
  const volumeLabels = { ...markLabels(serviceVolumeMark(installation, serviceId, token)), ...own };
  const declared = declaredVolumes(image);
  const memoryFolders = spec.readOnly && !declared.includes('/tmp') ? { '/tmp': TMP_OPTIONS } : {};
  return {
    name: serviceContainerName(token),
    imageId: spec.imageId,
    ...(spec.command.length === 0 ? {} : { command: spec.command }),
    ...(spec.user === undefined ? {} : { user: spec.user }),
    hostname: name,
    resolver: NO_OUTSIDE,
    env: spec.env,
    labels: { ...markLabels(serviceMark(installation, serviceId, token)), ...own },
    mounts: [
      // What the image has in this folder is nobody's secret, and would be taken for one.
      { type: 'anonymous', target: SERVICE_FOLDER, labels: volumeLabels, noCopy: true },
      // The image's own, declared once more, since the daemon would make them without labels: nobody's after a crash.
      ...declared.map((target) => ({ type: 'anonymous' as const, target, labels: volumeLabels, noCopy: false })),
    ],
    memoryFolders,
    readOnlyRoot: spec.readOnly,
    networkId: spec.networkId,
    aliases: [name],
    ...(spec.published === undefined ? {} : { furtherNetworkIds: [spec.published.networkId] }),
    ports,
    restart: 'no',
    ...(init ? { init: true } : {}),
    limits: spec.limits,
    log: { maxSize: '10m', maxFiles: 3 },
  };
}

/**
 * The daemon's resolver answers names of the container's networks, and would pass on all others: to a server on loopback
 * from the host's own namespace, also for a container on closed networks only (CVE-2024-29018), and so to the outside.
 * With this server it passes them on from the container's namespace, to where nobody listens. Programs ask once, and wait a
 * second: the resolver's own patience is ten (resolv.conf(5)).
 */
const NO_OUTSIDE = { servers: ['127.0.0.1'], options: ['timeout:1', 'attempts:1'] };

const TMP_OPTIONS = 'rw,noexec,nosuid,nodev,size=64m,mode=1777';

/** As the daemon shows them when they are mounted; it refuses what is asked for twice. */
function declaredVolumes({ volumes }: ImageInfo): readonly string[] {
  const paths = volumes.map((path) => path.replaceAll(/\/+/g, '/').replace(/(?<=.)\/$/, ''));
  return [...new Set(paths)].filter((path) => path !== SERVICE_FOLDER);
}
