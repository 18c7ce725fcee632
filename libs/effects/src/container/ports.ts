/**
 * Host ports for a service, out of the host's range. Nothing reserves a port before the container starts, so each that
 * somebody could mean to have is left out: those of other services, of any container of the daemon, and those that another
 * process listens on.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import type { ContainerInfo, Daemon, PublishedPort } from '#docker';
import type { EffectSpecs } from '#protocol';

type Published = NonNullable<EffectSpecs['container']['published']>;

/** At a time: each look has a connection of its own. */
const LOOKS = 10;

/** @returns undefined when the range has not as many free ones */
export async function choosePorts(
  daemon: Daemon,
  installation: string,
  published: Published,
): Promise<readonly PublishedPort[] | undefined> {
  const { address, ports, containerPorts, taken } = published;
  const others = new Set([...taken, ...(await portsOfContainers(daemon))]);
  const chosen: number[] = [];
  for (const port of candidates(ports, installation)) {
    if (chosen.length === containerPorts.length) break;
    if (!others.has(port) && (await isFree(address, port))) chosen.push(port);
  }
  if (chosen.length < containerPorts.length) return undefined;
  return containerPorts.map((container, index) => ({ address, container, host: chosen[index] ?? 0 }));
}

/** What a container of an earlier try was given. A port that it lacks is 0, which differs from whatever is there. */
export function portsOf(container: ContainerInfo, { address, containerPorts }: Published): readonly PublishedPort[] {
  const bindings = bindingsOf(container);
  return containerPorts.map((port) => ({
    address,
    container: port,
    host: Number(bindings[`${port}/tcp`]?.[0]?.HostPort ?? 0),
  }));
}

/** Every port of the range once, from an offset on that two installations rarely share. */
export function candidates({ from, to }: Published['ports'], installation: string): readonly number[] {
  const size = to - from + 1;
  const offset = createHash('sha256').update(installation).digest().readUInt32BE() % size;
  return Array.from({ length: size }, (_, index) => from + ((offset + index) % size));
}

/** Also of those that rest: they would want their ports back. */
async function portsOfContainers(daemon: Daemon): Promise<readonly number[]> {
  const containers = await daemon.containers();
  const resting = containers.filter(({ state }) => !HOLDING.has(state));
  const ports = containers.flatMap(({ hostPorts }) => hostPorts);
  for (let at = 0; at < resting.length; at += LOOKS) {
    const found = await Promise.all(resting.slice(at, at + LOOKS).map(({ id }) => daemon.container(id)));
    ports.push(...found.flatMap((container) => (container === undefined ? [] : hostPortsOf(container))));
  }
  return ports;
}

const HOLDING = new Set(['running', 'paused', 'restarting']);

function hostPortsOf(container: ContainerInfo): readonly number[] {
  return Object.values(bindingsOf(container))
    .flatMap((bindings) => bindings ?? [])
    .map(({ HostPort }) => Number(HostPort))
    .filter((port) => port > 0);
}

type Bindings = Readonly<Record<string, readonly { readonly HostPort?: string }[] | null | undefined>>;

/** The types say that there are always some. */
function bindingsOf(container: ContainerInfo): Bindings {
  return (container.HostConfig.PortBindings as Bindings | null | undefined) ?? {};
}

/** Nobody listens there now. */
function isFree(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ host: address, port, exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
