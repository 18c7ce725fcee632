/**
 * The Docker daemon, as this project uses it: every call has a deadline of ours, and every error is one of `DAEMON_ERRORS`.
 *
 * dockerode can wait for ever when the daemon dies in the middle of an answer, hence the deadlines. Each call has a
 * connection of its own: a kept one may be half dead, and then nobody could say whether the request was sent; and a stream
 * that is read slowly holds up no other call (FIELD-CASES B061).
 */
import { Agent } from 'node:http';
import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import type { LogLine, LogQuery } from '#kernel';
import type Dockerode from 'dockerode';
import type { ContainerFile, FileFound } from './archive.ts';
import { packFiles, putArchive, unpackFiles } from './archive.ts';
import type { ContainerRequest } from './container-request.ts';
import { createBody } from './container-request.ts';
import { classifyDaemonError, DaemonError, isDaemonError } from './errors.ts';
import type { ExecEnd, ExecRequest } from './exec.ts';
import { runExec } from './exec.ts';
import { frames } from './frames.ts';
import { openLog, readLog } from './log-stream.ts';
import type { PullRequest } from './pull.ts';
import { followPull } from './pull.ts';

export type ContainerInfo = Dockerode.ContainerInspectInfo;

export interface ImageInfo {
  /** `sha256:…` */
  readonly id: string;
  /** Paths that the image declares as volumes. */
  readonly volumes: readonly string[];
  /** `repository@sha256:…`, of each repository that it was pulled from; none for an image that was built here. */
  readonly repoDigests: readonly string[];
}

export interface NetworkInfo {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly subnets: readonly string[];
  readonly gateways: readonly string[];
  /** No way out of it, and none in. */
  readonly internal: boolean;
  /** Of its driver. */
  readonly options: Readonly<Record<string, string>>;
}

export interface NetworkDetail extends NetworkInfo {
  /** Of containers that run. */
  readonly endpoints: readonly {
    /** What the container was called when it joined. */
    readonly name: string;
    /** Undefined for one that was left behind: no container has it. */
    readonly containerId: string | undefined;
  }[];
}

export interface ContainerState {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Changes when the container's state or health does. */
  readonly state: string;
}

export interface ContainerListed {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `running`, `paused` and `restarting` ones hold their ports. */
  readonly state: string;
  /** Of the host; known of those that hold them only. */
  readonly hostPorts: readonly number[];
}

export interface VolumeInfo {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const CALL_DEADLINE_MS = 60_000;

/** Milliseconds that one call may take, asked for when it begins. */
export interface CallDeadlines {
  look(): number;
  change(): number;
}

/** Events. A health check is an `exec` each time, and says nothing new by that. */
const CHANGES_OF_STATE = ['start', 'die', 'oom', 'pause', 'unpause', 'restart', 'destroy', 'health_status'];

export class Daemon {
  readonly #dockerHost: string;
  readonly #deadlines: CallDeadlines;
  #client: Promise<Dockerode> | undefined;
  #changes = 0;

  /**
   * @param dockerHost as DOCKER_HOST: `unix:///…` or `tcp://host:port`
   * @param deadlines for each call that does not say otherwise; a number of milliseconds for all of them
   */
  constructor(dockerHost: string, deadlines: number | CallDeadlines = CALL_DEADLINE_MS) {
    this.#dockerHost = dockerHost;
    this.#deadlines = typeof deadlines === 'number' ? { look: () => deadlines, change: () => deadlines } : deadlines;
  }

  /** Requests that ask for a change and may have been sent. While it is 0 this object has changed nothing. */
  get changes(): number {
    return this.#changes;
  }

  /** @param reference id, name or digest */
  async image(reference: string): Promise<ImageInfo | undefined> {
    const image = await this.#find((client) => client.getImage(reference).inspect());
    // The types say it is always there; classic images without one have null.
    const volumes = (image?.Config as { Volumes?: object | null } | undefined)?.Volumes;
    return image === undefined
      ? undefined
      : { id: image.Id, volumes: Object.keys(volumes ?? {}), repoDigests: repoDigestsOf(image) };
  }

  /** Returns when the whole image is there. A failure inside the stream is an error here (B059). */
  async pull(reference: string, { deadlineMs, credentials, onProgress }: PullRequest): Promise<void> {
    const authconfig = credentials === undefined ? {} : { authconfig: { ...credentials, serveraddress: '' } };
    await this.#change(async (client, abortSignal) => {
      await followPull(await client.pull(reference, { ...authconfig, abortSignal }), onProgress);
    }, deadlineMs);
  }

  async networks(): Promise<readonly NetworkInfo[]> {
    const networks = await this.#call((client, abortSignal) => client.listNetworks({ abortSignal }));
    return networks.map(networkInfo);
  }

  async network(id: string): Promise<NetworkDetail | undefined> {
    const network = await this.#find((client) => client.getNetwork(id).inspect());
    if (network === undefined) return undefined;
    const endpoints = Object.entries(network.Containers ?? {}).map(([key, { Name }]) => ({
      name: Name,
      containerId: key.startsWith('ep-') ? undefined : key,
    }));
    return { ...networkInfo(network), endpoints };
  }

  /** A bridge with one explicit subnet. @returns its id */
  async createNetwork(request: {
    readonly name: string;
    readonly subnet: string;
    readonly gateway: string;
    readonly internal: boolean;
    readonly options: Readonly<Record<string, string>>;
    readonly labels: Readonly<Record<string, string>>;
  }): Promise<string> {
    const network = await this.#change((client, abortSignal) =>
      client.createNetwork({
        Name: request.name,
        Driver: 'bridge',
        // Daemons before API 1.44 would make a second network of the same name otherwise.
        CheckDuplicate: true,
        Internal: request.internal,
        Options: { ...request.options },
        IPAM: { Driver: 'default', Config: [{ Subnet: request.subnet, Gateway: request.gateway }] },
        Labels: { ...request.labels },
        abortSignal,
      }),
    );
    return network.id;
  }

  async removeNetwork(id: string): Promise<void> {
    await this.#change((client, abortSignal) => client.getNetwork(id).remove({ abortSignal }));
  }

  /** A container that rests is connected when it starts. */
  async connect(networkId: string, containerId: string, aliases: readonly string[]): Promise<void> {
    await this.#change((client, abortSignal) => {
      const options = { Container: containerId, EndpointConfig: { Aliases: [...aliases] }, abortSignal };
      return client.getNetwork(networkId).connect(options);
    });
  }

  /**
   * By force: an endpoint goes too that was left behind, and so does what a container says about a network that is gone.
   * @param network id, or the name of one that is gone
   */
  async disconnect(network: string, containerId: string): Promise<void> {
    await this.#change((client, abortSignal) =>
      client.getNetwork(network).disconnect({ Container: containerId, Force: true, abortSignal }),
    );
  }

  async volume(name: string): Promise<VolumeInfo | undefined> {
    const volume = await this.#find((client, abortSignal) => client.getVolume(name).inspect({ abortSignal }));
    return volume === undefined ? undefined : { name: volume.Name, labels: labelsOf(volume.Labels) };
  }

  async volumes(): Promise<readonly VolumeInfo[]> {
    const { Volumes } = await this.#call((client, abortSignal) => client.listVolumes({ abortSignal }));
    return Volumes.map(({ Name, Labels }) => ({ name: Name, labels: labelsOf(Labels) }));
  }

  /** Where the name is taken, the daemon answers as if it had made it: the labels tell whose it is. */
  async createVolume(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    await this.#change((client, abortSignal) =>
      client.createVolume({ Name: name, Driver: 'local', Labels: { ...labels }, abortSignal }),
    );
  }

  async removeVolume(name: string): Promise<void> {
    await this.#change((client, abortSignal) => client.getVolume(name).remove({ abortSignal }));
  }

  /** @param reference id or name; the answer's `Id` says which one it is */
  async container(reference: string): Promise<ContainerInfo | undefined> {
    return this.#find((client, abortSignal) => client.getContainer(reference).inspect({ abortSignal }));
  }

  /** All containers, running or not. */
  async containers(): Promise<readonly ContainerListed[]> {
    const containers = await this.#call((client, abortSignal) => client.listContainers({ all: true, abortSignal }));
    return containers.map(({ Id, Labels, State, Ports }) => ({
      id: Id,
      labels: labelsOf(Labels),
      state: State,
      // The types say that each has one.
      hostPorts: Ports.flatMap(({ PublicPort }) => (PublicPort as number | undefined) ?? []),
    }));
  }

  /** Containers that carry all of these labels, and how each is, as far as a list tells. */
  async containerStates(labels: readonly string[]): Promise<readonly ContainerState[]> {
    const filters = { label: [...labels] };
    const containers = await this.#call((client, abortSignal) =>
      client.listContainers({ all: true, filters, abortSignal }),
    );
    return containers.map(({ Id, Labels, State, Status }) => ({
      id: Id,
      labels: labelsOf(Labels),
      // The health check's word stands in the sentence alone; the rest of it tells the time, and changes with it.
      state: `${State}${/\((?:health: )?(\w+)\)/.exec(Status)?.[1] ?? ''}`,
    }));
  }

  /**
   * Calls `onChange` with the id of every container with these labels whose state or health changes. A wake-up and no
   * evidence: what was missed is not said. Returns when the daemon ends the stream, or `signal` is aborted.
   */
  async watchContainers(
    labels: readonly string[],
    onChange: (containerId: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const client = await (this.#client ??= connect(this.#dockerHost));
    try {
      const filters = JSON.stringify({ type: ['container'], event: CHANGES_OF_STATE, label: labels });
      const stream = await client.getEvents({ filters, abortSignal: signal });
      for await (const line of createInterface({ input: stream })) {
        const { Actor, id } = JSON.parse(line) as { readonly Actor?: { readonly ID?: string }; readonly id?: string };
        // `id` is what daemons said before API 1.22, and what they no longer say from 1.52 on.
        const containerId = Actor?.ID ?? id;
        if (containerId !== undefined) onChange(containerId);
      }
    } catch (error) {
      if (!signal.aborted) throw classifyDaemonError(error);
    }
  }

  /** @returns the id */
  async createContainer(request: ContainerRequest): Promise<string> {
    const container = await this.#change((client, abortSignal) =>
      client.createContainer({ ...createBody(request), abortSignal }),
    );
    return container.id;
  }

  /** Also succeeds when it runs already. */
  async startContainer(id: string): Promise<void> {
    await this.#settled(this.#change((client, abortSignal) => client.getContainer(id).start({ abortSignal })));
  }

  /** Waits until it has stopped; also succeeds when it does not run. The restart policy lets it rest. */
  async stopContainer(id: string, timeoutSeconds: number): Promise<void> {
    await this.#settled(
      this.#change(
        (client, abortSignal) => client.getContainer(id).stop({ t: timeoutSeconds, abortSignal }),
        timeoutSeconds * 1_000 + this.#deadlines.look(),
      ),
    );
  }

  /** Whatever state it is in, with its anonymous volumes; a named one stays. */
  async removeContainer(id: string): Promise<void> {
    await this.#change((client, abortSignal) => client.getContainer(id).remove({ force: true, v: true, abortSignal }));
  }

  async setRestartPolicy(id: string, name: ContainerRequest['restart']): Promise<void> {
    const RestartPolicy = { Name: name, MaximumRetryCount: 0 };
    await this.#change((client, abortSignal) => client.getContainer(id).update({ RestartPolicy, abortSignal }));
  }

  /** Into a folder of a container, whether it runs or not; what is there under these names is replaced. */
  async putFiles(id: string, folder: string, files: readonly ContainerFile[]): Promise<void> {
    const archive = await packFiles(files);
    await this.#change((client, abortSignal) => putArchive(client, id, folder, archive, abortSignal));
  }

  /**
   * A file, or a folder and everything in it; a symbolic link is not followed. Whether the container runs or not.
   * @returns undefined when there is nothing, or no such container
   */
  async files(id: string, path: string, maxBytes: number): Promise<readonly FileFound[] | undefined> {
    return this.#find(async (client, abortSignal) => {
      const stream = await client.getContainer(id).getArchive({ path, abortSignal });
      return unpackFiles(stream as Readable, maxBytes);
    });
  }

  /** Runs a program that changes nothing in a container that runs; one that is given up may run on. */
  async exec(id: string, request: ExecRequest, deadlineMs: number): Promise<ExecEnd> {
    return this.#call((client, abortSignal) => runExec(client, id, request, abortSignal), deadlineMs);
  }

  /** Whether the daemon has what `ContainerRequest.init` asks for: without it a container that wants it does not start. */
  async hasInit(): Promise<boolean> {
    const { InitCommit } = (await this.#call((client) => client.info())) as { InitCommit?: { ID?: string } };
    // Where the program is missing, or says nothing that the daemon understands (moby, daemon/info_unix.go).
    return InitCommit?.ID !== undefined && InitCommit.ID !== 'N/A';
  }

  /** The last lines of both streams, in order. */
  async logTail(id: string, lines: number): Promise<readonly string[]> {
    const log = await this.#call((client, abortSignal) =>
      client.getContainer(id).logs({ stdout: true, stderr: true, follow: false, tail: lines, abortSignal }),
    );
    const text = Buffer.concat(frames(log).map(({ bytes }) => bytes)).toString('utf8');
    return text.split('\n').filter((line) => line !== '');
  }

  /**
   * The log of a container, with the time of each line. It ends when there is no more, or, followed, when the container
   * stops; a daemon that goes away in between is an error. Lines wait until they are taken.
   * @param terminal whether the container has one (`Config.Tty`)
   * @param ending ends it, with an error, also while nothing comes: a daemon that dies may say nothing more, so whoever
   *   does not follow has a deadline
   */
  async logs(
    id: string,
    { terminal, ...query }: LogQuery & { readonly terminal: boolean },
    ending: AbortSignal,
  ): Promise<AsyncGenerator<readonly LogLine[]>> {
    const stream = await this.#call((client, abortSignal) =>
      openLog(client, id, query, AbortSignal.any([abortSignal, ending])),
    );
    return readLog(stream, terminal);
  }

  async #find<T>(send: Send<T>): Promise<T | undefined> {
    try {
      return await this.#call(send);
    } catch (error) {
      if (isDaemonError(error, 'absent')) return undefined;
      throw error;
    }
  }

  async #settled(change: Promise<unknown>): Promise<void> {
    try {
      await change;
    } catch (error) {
      if (!isDaemonError(error, 'already')) throw error;
    }
  }

  async #change<T>(send: Send<T>, deadlineMs = this.#deadlines.change()): Promise<T> {
    this.#changes += 1;
    try {
      return await this.#call(send, deadlineMs);
    } catch (error) {
      const { kind, message, status, cause } = classifyDaemonError(error);
      if (kind === 'unreachable') this.#changes -= 1;
      throw new DaemonError(kind, message, { ...(status === undefined ? {} : { status }), cause, ofChange: true });
    }
  }

  async #call<T>(send: Send<T>, deadlineMs = this.#deadlines.look()): Promise<T> {
    const abort = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const givingUp = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(new DaemonError('lost', `the Docker daemon has not answered within ${Math.round(deadlineMs)} ms`));
        abort.abort();
      }, deadlineMs);
    });
    const sending = (this.#client ??= connect(this.#dockerHost)).then((client) => send(client, abort.signal));
    // Once the deadline has decided, its own failure is nobody's any more.
    sending.catch(() => undefined);
    try {
      return await Promise.race([sending, givingUp]);
    } catch (error) {
      throw classifyDaemonError(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

type Send<T> = (client: Dockerode, abortSignal: AbortSignal) => Promise<T>;

/** The library is loaded with the first call: it takes 100 ms and 13 MB, and an idle runner never needs it. */
async function connect(dockerHost: string): Promise<Dockerode> {
  const { default: Client } = await import('dockerode');
  const address = new URL(dockerHost);
  const agent = new Agent({ keepAlive: false });
  // The types of dockerode do not know `agent`. The host is emptied because dockerode would else take one from the
  // environment, and ignore the socket.
  const target =
    address.protocol === 'unix:'
      ? { socketPath: decodeURIComponent(address.pathname), host: '', agent }
      : { protocol: 'http' as const, host: address.hostname, port: address.port, agent };
  return new Client(target);
}

function networkInfo(network: Dockerode.NetworkInspectInfo): NetworkInfo {
  const ranges = network.IPAM?.Config ?? [];
  return {
    id: network.Id,
    name: network.Name,
    labels: labelsOf(network.Labels),
    subnets: ranges.flatMap(({ Subnet }) => Subnet ?? []),
    gateways: ranges.flatMap(({ Gateway }) => Gateway ?? []),
    internal: network.Internal,
    options: labelsOf(network.Options),
  };
}

/** The types say they are always there. */
function repoDigestsOf(image: { readonly RepoDigests?: readonly string[] | null }): readonly string[] {
  return image.RepoDigests ?? [];
}

/** The daemon says `null` for none. */
function labelsOf(labels: Readonly<Record<string, string>> | null | undefined): Readonly<Record<string, string>> {
  return labels ?? {};
}
