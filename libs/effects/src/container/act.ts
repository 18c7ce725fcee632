/**
 * A service's container, created and not started. What the daemon then shows is compared with what was asked: a daemon that
 * dies in the middle leaves one without a volume or a network, under the right name and with the right labels.
 *
 * The name is the attempt's, so the same try again finds what it made the first time and makes nothing (FIELD-CASES B057).
 * An answer of the daemon ends the call, a failure too: the look by that name which follows is final.
 */
import type { ContainerInfo, ContainerRequest, Daemon, DaemonError, NetworkInfo } from '#docker';
import { containerDifferences, isAnswer } from '#docker';
import type { EffectSpecs } from '#protocol';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import type { TimeLeft } from '../daemon-act.ts';
import { withDaemon } from '../daemon-act.ts';
import { codeOf } from '../daemon-said.ts';
import { carriesMark, isOurs } from '../docker-marks.ts';
import { removeServiceObjects, serviceVolumes } from '../service-objects.ts';
import { choosePorts, portsOf } from './ports.ts';
import { serviceContainerName, serviceContainerRequest, serviceMark } from './request.ts';

type Spec = EffectSpecs['container'];

interface Attempt {
  readonly installation: string;
  readonly serviceId: string;
  readonly token: string;
}

export const act: Act<'container'> = (context, spec) =>
  withDaemon(context, 'container', async (daemon, time) => {
    const { published, serviceId } = spec;
    const attempt: Attempt = { installation: context.installation, serviceId, token: context.inHand.token };
    const image = await daemon.image(spec.imageId);
    if (image === undefined) return refused('image_unavailable', `image ${spec.imageId} is no longer on the host`);
    const networks = await daemon.networks();
    const wanted = [spec.networkId, ...(published === undefined ? [] : [published.networkId])];
    const lacking = wanted.find(
      (id) => !networks.some((network) => network.id === id && isTheirs(network, attempt, spec)),
    );
    // The daemon connects what rests to a network that there is not.
    if (lacking !== undefined)
      return refused('foreign_object', `network ${lacking} is not there, or is not this environment's`);
    const there = await daemon.container(serviceContainerName(attempt.token));
    if (there !== undefined && !isThisTry(there, attempt)) return foreign(there);
    const ports =
      published === undefined
        ? []
        : there === undefined
          ? await choosePorts(daemon, attempt.installation, published)
          : portsOf(there, published);
    if (ports === undefined) return refused('ports_unavailable', 'too few of this host’s ports for services are free');
    const request = serviceContainerRequest(attempt, spec, image, ports, await daemon.hasInit());
    const created = there ?? (await create(daemon, request, time));
    if (created === undefined)
      // A create may still be under way, or have failed and kept the name (B054): other tries have other names.
      return unknown('container_missing', `the name ${request.name} is taken, and no container has it`);
    if (created instanceof Error) {
      // A create that failed can leave its volumes behind (B069).
      const code = codeOf(created.message, 'container_not_created');
      return rolledBack(daemon, time, attempt, code, `the container was not created: ${created.message}`);
    }
    if (!isThisTry(created, attempt)) return foreign(created);
    const names = new Map(networks.map(({ id, name }) => [id, name]));
    return complete(daemon, time, attempt, spec, request, created.Id, names);
  });

function isTheirs(network: NetworkInfo, { installation }: Attempt, { environmentId }: Spec): boolean {
  return isOurs(network.labels, { installation, kind: 'network', id: environmentId });
}

function isThisTry({ Config }: ContainerInfo, { installation, serviceId, token }: Attempt): boolean {
  return carriesMark(Config.Labels, serviceMark(installation, serviceId, token));
}

function foreign({ Name }: ContainerInfo): ActResult {
  return refused('foreign_object', `container ${Name.slice(1)} exists and is not ours`);
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
    if (!isAnswer(error)) throw error;
    failure = error;
  }
  for (;;) {
    const there = await daemon.container(request.name);
    if (there !== undefined) return there;
    if (failure.kind !== 'conflict') return failure;
    if (!(await time.pause())) return undefined;
  }
}

async function rolledBack(
  daemon: Daemon,
  time: TimeLeft,
  attempt: Attempt,
  code: string,
  message: string,
): Promise<ActResult> {
  const removed = await removeServiceObjects(daemon, time, attempt);
  if (removed.outcome === 'applied') return refused(code, message);
  const volumes = await serviceVolumes(daemon, attempt);
  const left = volumes.length === 0 ? 'the container' : `volumes ${volumes.join(', ')}`;
  return unknown(code, `${message}; ${left} could not be removed: ${removed.reason.message}`);
}

async function complete(
  daemon: Daemon,
  time: TimeLeft,
  attempt: Attempt,
  { serviceId, imageId, published }: Spec,
  request: ContainerRequest,
  id: string,
  networkNames: ReadonlyMap<string, string>,
): Promise<ActResult> {
  if (published !== undefined) {
    const failure = await connect(daemon, id, published.networkId, networkNames);
    if (failure !== undefined) {
      const what = `the container was not connected to the network of published ports: ${failure.message}`;
      return rolledBack(daemon, time, attempt, 'network_not_connected', what);
    }
  }
  const found = await daemon.container(id);
  if (found === undefined) return rolledBack(daemon, time, attempt, 'container_missing', `container ${id} is gone`);
  const differences = [
    ...containerDifferences(request, found, networkNames),
    ...(await volumeDifferences(daemon, found, attempt)),
  ];
  if (differences.length > 0) {
    const what = `the container came out different from what was asked: ${differences.join('; ')}`;
    // One that was started has come further than this act; it is not this act's to remove.
    return found.State.Status === 'created'
      ? rolledBack(daemon, time, attempt, 'container_differs', what)
      : unknown('container_differs', `${what}; it is ${found.State.Status}`);
  }
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
    if (isAnswer(error)) return error;
    throw error;
  }
}

/** Volumes are found by their labels when the container is gone, so those it has must be the ones that carry them. */
async function volumeDifferences(daemon: Daemon, found: ContainerInfo, attempt: Attempt): Promise<readonly string[]> {
  const mounted = found.Mounts.filter(({ Type }) => Type === 'volume').map(({ Name }) => Name ?? '');
  const labelled = await serviceVolumes(daemon, attempt);
  return mounted.filter((name) => !labelled.includes(name)).map((name) => `volume ${name} is not labelled as ours`);
}
