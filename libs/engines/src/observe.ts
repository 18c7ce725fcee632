/**
 * What an engine is found to be, for its pin (DESIGN §7). Only reads: one inspect and one statement, so that it can be done
 * before every claim.
 */
import type { ContainerInfo } from '#docker';
import { Daemon, isDaemonError } from '#docker';
import { parseMark } from '#kernel';
import type { Client } from '#postgres';
import type { Pin } from '#protocol';
import { sha256 } from './digest.ts';
import { CONTAINER_CONF, DATA_FOLDER, PINNED_FILES, VOLUME_MARK_FILE } from './layout.ts';

/** The engine, or the daemon that has it, does not answer now: nothing can be said about it. */
export class EngineAway extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineAway';
  }
}

/** Runs a read on some connection to the control database. */
export type Reader = <T>(work: (client: Client) => Promise<T>) => Promise<T>;

/** Short, since a claim waits for it. */
const LOOK_DEADLINE_MS = 5_000;

/** What stands in a pin's place for something that is not there: it differs from everything that is pinned. */
const NOTHING = 'absent';

/**
 * @param pinned what to look for: the container by its id, never by a name
 * @returns what is there; `containerId` is `absent` when the daemon knows no such container
 * @throws EngineAway
 */
export async function observePin(dockerHost: string, pinned: Pin, read: Reader): Promise<Pin> {
  const container = await asking(dockerHost, (daemon) => daemon.container(pinned.containerId));
  if (container === undefined) return { ...pinned, containerId: NOTHING };
  if (!container.State.Running) throw new EngineAway(`its container is ${container.State.Status}`);
  return pinOf(container, await read(readServer));
}

/** The container is there and rests: a start is what it needs. False too when nobody can say. */
export async function isStopped(dockerHost: string, containerId: string): Promise<boolean> {
  try {
    const container = await asking(dockerHost, (daemon) => daemon.container(containerId));
    return container !== undefined && ['created', 'exited'].includes(container.State.Status);
  } catch (error) {
    if (error instanceof EngineAway) return false;
    throw error;
  }
}

/**
 * Which of these tokens something in the daemon carries as its label.
 * @throws EngineAway
 */
export async function findTokens(dockerHost: string, tokens: readonly string[]): Promise<readonly string[]> {
  if (tokens.length === 0) return [];
  const labels = await asking(dockerHost, async (daemon) =>
    (await Promise.all([daemon.containers(), daemon.networks(), daemon.volumes()])).flat().map((thing) => thing.labels),
  );
  const carried = new Set(labels.map((label) => label['surefoot.token']));
  return tokens.filter((token) => carried.has(token));
}

async function asking<T>(dockerHost: string, look: (daemon: Daemon) => Promise<T>): Promise<T> {
  try {
    return await look(new Daemon(dockerHost, LOOK_DEADLINE_MS));
  } catch (error) {
    if (isDaemonError(error)) throw new EngineAway(error.message, { cause: error });
    throw error;
  }
}

export interface ServerFacts {
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly dataDirectory: string;
  /** The volume's mark as it stands in its file; null when there is none. */
  readonly mark: string | null;
  /** SHA-256 of each of `PINNED_FILES`, as the server sees them. */
  readonly files: readonly (string | null)[];
}

// One row out of pg_control and a few small files: 1 ms.
const SERVER = /* sql */ `
  select (select system_identifier::text from pg_control_system()) as "systemIdentifier",
         (select timeline_id from pg_control_checkpoint()) as timeline,
         current_setting('data_directory') as "dataDirectory",
         pg_read_file(regexp_replace(current_setting('data_directory'), '[^/]+$', '') || '${VOLUME_MARK_FILE}', 0, 1000, true) as mark,
         array[${PINNED_FILES.map((file) => `encode(sha256(pg_read_binary_file('${CONTAINER_CONF}/${file}', 0, 1000000, true)), 'hex')`).join(', ')}] as files`;

export async function readServer(client: Client): Promise<ServerFacts> {
  const { rows } = await client.query<ServerFacts>(SERVER);
  const [row] = rows;
  if (row === undefined) throw new EngineAway('the server gave no answer');
  return row;
}

export function pinOf(container: ContainerInfo, server: ServerFacts): Pin {
  const { dataDirectory, mark, systemIdentifier, timeline } = server;
  // Data that is not in a named volume is lost with the container, whatever the server says about itself (B062).
  const volume = container.Mounts.find(
    ({ Type, Destination }) => Type === 'volume' && dataDirectory === `${Destination}/${DATA_FOLDER}`,
  );
  return {
    containerId: container.Id,
    imageDigest: container.Image,
    volumeName: volume?.Name ?? NOTHING,
    volumeMark: parseMark(mark === null ? null : mark.trim())?.token ?? NOTHING,
    systemIdentifier,
    timeline,
    configurationDigest: configurationDigest(container, server),
  };
}

/**
 * What can be changed on a living container (limits, restart policy) or says, for the record, what it was made with. Named
 * one by one: a newer daemon that shows more has not changed the engine. Networks that environments bring are left out.
 */
const HOST_FIELDS = [
  'NetworkMode',
  'PortBindings',
  'RestartPolicy',
  'ShmSize',
  'ReadonlyRootfs',
  'Privileged',
  'CapAdd',
  'CapDrop',
  'SecurityOpt',
  'Memory',
  'MemorySwap',
  'NanoCpus',
  'CpuQuota',
  'CpuPeriod',
  'CpusetCpus',
  'PidsLimit',
] as const;

/** ALTER SYSTEM is left out too: it cannot change what matters here (see the entrypoint's last lines). */
function configurationDigest(container: ContainerInfo, server: ServerFacts): string {
  const { User, Entrypoint, Cmd } = container.Config;
  const host = container.HostConfig as Readonly<Record<(typeof HOST_FIELDS)[number], unknown>>;
  const mounts = container.Mounts.map(
    ({ Type, Name, Source, Destination, RW }) => `${Type} ${Name ?? Source} ${Destination} ${RW}`,
  );
  return sha256(
    JSON.stringify([
      [User, Entrypoint, Cmd],
      mounts.sort(),
      HOST_FIELDS.map((field) => [field, host[field] ?? null]),
      server.files,
    ]),
  );
}
