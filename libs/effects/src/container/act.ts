/**
 * A service's container, created and not started. What the daemon then shows is compared with what was asked: a daemon that
 * dies in the middle leaves one without a volume or a network, under the right name and with the right labels.
 *
 * The name is the attempt's, so the same try again finds what it made the first time and makes nothing (FIELD-CASES B057).
 * An answer of the daemon ends the call, a failure too: the look by that name which follows is final.
 */
import type { ContainerInfo, ContainerRequest, Daemon, DaemonError } from '#docker';
import { containerDifferences, isDaemonError } from '#docker';
import type { EffectSpecs } from '#protocol';
import type { Act, ActContext, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import type { TimeLeft } from '../daemon-act.ts';
import { withDaemon } from '../daemon-act.ts';
import { carriesMark } from '../docker-marks.ts';
import { removeServiceObjects, serviceVolumes } from '../service-objects.ts';
import { choosePorts, portsOf } from './ports.ts';
import { serviceContainerName, serviceContainerRequest, serviceMark } from './request.ts';

type Spec = EffectSpecs['container'];

export const act: Act<'container'> = (context, spec) =>
  withDaemon(context, async (daemon, time) => {
    const { installation, inHand } = context;
    const { published, serviceId } = spec;
    const image = await daemon.image(spec.imageId);
    if (image === undefined) return refused('image_unavailable', `image ${spec.imageId} is no longer on the host`);
    const there = await daemon.container(serviceContainerName(inHand.token));
    const stranger = foreign(context, spec, there);
    if (stranger !== undefined) return stranger;
    const ports =
      published === undefined
        ? []
        : there === undefined
          ? await choosePorts(daemon, installation, published)
          : portsOf(there, published);
    if (ports === undefined)
      return refused(
        'ports_unavailable',
        `of ports ${published?.ports.from} to ${published?.ports.to} not enough are free`,
      );
    const attempt = { installation, token: inHand.token };
    const request = serviceContainerRequest(attempt, spec, image, ports, await daemon.hasInit());
    const created = there ?? (await create(daemon, request, time));
    if (created === undefined)
      // A create may still be under way, or have failed and kept the name (B054): other tries have other names.
      return unknown('container_missing', `the name ${request.name} is taken, and no container has it`);
    if (created instanceof Error) return notCreated(daemon, time, { ...attempt, serviceId }, created);
    return foreign(context, spec, created) ?? complete(daemon, time, context, spec, request, created.Id);
  });

function foreign({ installation, inHand }: ActContext, spec: Spec, there?: ContainerInfo): ActResult | undefined {
  if (there === undefined || carriesMark(there.Config.Labels, serviceMark(installation, spec.serviceId, inHand.token)))
    return undefined;
  return refused('foreign_object', `container ${there.Name.slice(1)} exists and is not ours`);
}

/**
 * @returns what has the name now: what was just made, or what was there; what the daemon said when nothing was made;
 *   undefined when the name is taken by nothing that shows in time
 */
async function create(
  daemon: Daemon,
  request: ContainerRequest,
  time: TimeLeft,
): Promise<ContainerInfo | DaemonError | undefined> {
  let failure: DaemonError;
  try {
    await daemon.createContainer(request);
    return await daemon.container(request.name);
  } catch (error) {
    if (!isDaemonError(error, 'conflict', 'absent', 'refused', 'failed')) throw error;
    failure = error;
  }
  for (;;) {
    const there = await daemon.container(request.name);
    if (there !== undefined) return there;
    if (failure.kind !== 'conflict') return failure;
    if (!(await time.pause())) return undefined;
  }
}

/** A create that failed can leave its volumes behind (B069). */
async function notCreated(
  daemon: Daemon,
  time: TimeLeft,
  whose: { readonly installation: string; readonly serviceId: string; readonly token: string },
  failure: DaemonError,
): Promise<ActResult> {
  const code = /no space left on device/i.test(failure.message) ? 'disk_full' : 'container_not_created';
  return rolledBack(daemon, time, whose, code, `the container was not created: ${failure.message}`);
}

async function rolledBack(
  daemon: Daemon,
  time: TimeLeft,
  whose: { readonly installation: string; readonly serviceId: string; readonly token: string },
  code: string,
  message: string,
): Promise<ActResult> {
  const removed = await removeServiceObjects(daemon, time, whose);
  if (removed.outcome === 'applied') return refused(code, message);
  const volumes = await serviceVolumes(daemon, whose);
  const left = volumes.length === 0 ? 'the container' : `volumes ${volumes.join(', ')}`;
  return unknown(code, `${message}; ${left} could not be removed: ${removed.reason.message}`);
}

async function complete(
  daemon: Daemon,
  time: TimeLeft,
  { installation, inHand: { token } }: ActContext,
  { serviceId, imageId, published }: Spec,
  request: ContainerRequest,
  id: string,
): Promise<ActResult> {
  const whose = { installation, serviceId, token };
  const networks = await daemon.networks();
  const names = new Map(networks.map((network) => [network.id, network.name]));
  if (published !== undefined) {
    const failure = await connect(daemon, id, published.networkId, names);
    if (failure !== undefined)
      return rolledBack(
        daemon,
        time,
        whose,
        'network_not_connected',
        `the container was not connected to the network of published ports: ${failure.message}`,
      );
  }
  const found = await daemon.container(id);
  if (found === undefined) return rolledBack(daemon, time, whose, 'container_missing', `container ${id} is gone`);
  const differences = [
    ...containerDifferences(request, found, names),
    ...(await volumeDifferences(daemon, found, whose)),
  ];
  if (differences.length > 0)
    return rolledBack(
      daemon,
      time,
      whose,
      'container_differs',
      `the container came out different from what was asked: ${differences.join('; ')}`,
    );
  const ports = Object.fromEntries(request.ports.map(({ container, host }) => [String(container), host]));
  return applied({ serviceId, containerId: id, imageId, ports });
}

/** @returns what the daemon said instead of connecting it */
async function connect(
  daemon: Daemon,
  id: string,
  networkId: string,
  names: ReadonlyMap<string, string>,
): Promise<DaemonError | undefined> {
  const container = await daemon.container(id);
  const there = Object.entries(container?.NetworkSettings.Networks ?? {});
  if (there.some(([name, { NetworkID }]) => NetworkID === networkId || name === names.get(networkId))) return undefined;
  try {
    await daemon.connect(networkId, id, []);
    return undefined;
  } catch (error) {
    if (isDaemonError(error, 'conflict', 'absent', 'refused', 'failed')) return error;
    throw error;
  }
}

/** Volumes are found by their labels when the container is gone, so those it has must be the ones that carry them. */
async function volumeDifferences(
  daemon: Daemon,
  found: ContainerInfo,
  whose: Parameters<typeof serviceVolumes>[1],
): Promise<readonly string[]> {
  const mounted = found.Mounts.filter(({ Type }) => Type === 'volume').map(({ Name }) => Name ?? '');
  const labelled = await serviceVolumes(daemon, whose);
  return mounted.filter((name) => !labelled.includes(name)).map((name) => `volume ${name} is not labelled as ours`);
}
