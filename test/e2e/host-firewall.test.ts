/**
 * The firewall rules that `npm start` sets, tried from inside containers that have addresses of this installation's pool and
 * are on networks with a way out, as services with published ports are. Containers here may send raw packets, which
 * services may not; they do not try.
 */
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freeSubnet } from '#docker';
import { homeFromEnvironment, loadSettings } from '#settings';
import { waitUntil } from '#testing';

const settings = loadSettings(homeFromEnvironment(process.env));
const run = promisify(execFile);
const tag = randomUUID().slice(0, 8);
const containers: string[] = [];
const networks: string[] = [];

async function docker(...args: readonly string[]): Promise<string> {
  return (await run('docker', ['-H', settings.dockerHost, ...args])).stdout.trim();
}

async function lines(...args: readonly string[]): Promise<readonly string[]> {
  return (await docker(...args)).split(/\s+/).filter((line) => line !== '');
}

/** Such as the worker makes for published ports. */
async function network(): Promise<{ readonly name: string; readonly gateway: string }> {
  const ids = await lines('network', 'ls', '-q');
  const taken = await lines('network', 'inspect', '-f', '{{range .IPAM.Config}}{{.Subnet}} {{end}}', ...ids);
  const { subnet, gateway } = freeSubnet(settings.networkPool, taken, 28)!;
  const name = `firewall-${tag}-${networks.length}`;
  const quiet = ['-o', 'com.docker.network.bridge.enable_ip_masquerade=false'];
  networks.push(name);
  await docker('network', 'create', ...quiet, '--subnet', subnet, '--gateway', gateway, name);
  return { name, gateway };
}

interface Listener {
  readonly id: string;
  readonly address: string;
  readonly hostPort: number;
}

function answering(name: string): string {
  return `require('net').createServer((socket) => socket.end('${name}')).listen(8000, () => console.log('up'))`;
}

/** A container that runs somebody else's code, which answers on port 8000 with its name. */
async function listener(on: string): Promise<Listener> {
  const name = `${on}-${containers.length}`;
  const node = `${realpathSync(process.execPath)}:/node:ro`;
  const publish = ['-p', '127.0.0.1::8000'];
  const args = ['-d', '--init', '--name', name, '--network', on, ...publish, '-v', node, '--entrypoint', '/node'];
  containers.push(name);
  const id = await docker('run', ...args, settings.engineImage, '-e', answering(name));
  await waitUntil('it listens', async () => (await docker('logs', id)) === 'up');
  const address = await docker('inspect', '-f', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', id);
  const hostPort = Number((await docker('port', id, '8000')).split(':').at(-1));
  return { id, address, hostPort };
}

/** @returns of these addresses, those that a connection from inside the container reaches */
async function reached(from: Listener, addresses: readonly string[]): Promise<readonly string[]> {
  const tries = addresses.map((address) => {
    const [host, port] = address.split(':');
    return `(timeout 3 bash -c ': </dev/tcp/${host}/${port}' 2>/dev/null && echo ${address}) &`;
  });
  return lines('exec', from.id, 'bash', '-c', `${tries.join('\n')}\nwait`);
}

const onHost = createServer((socket) => socket.end());
let own: { readonly name: string; readonly gateway: string };
let other: typeof own;
let hostile: Listener;
let neighbour: Listener;
let stranger: Listener;

beforeAll(async () => {
  await new Promise<void>((resolve) => onHost.listen(0, '0.0.0.0', resolve));
  [own, other] = [await network(), await network()];
  [hostile, neighbour, stranger] = [await listener(own.name), await listener(own.name), await listener(other.name)];
}, 120_000);

afterAll(async () => {
  onHost.close();
  if (containers.length > 0) await docker('rm', '-f', '-v', ...containers);
  for (const name of networks) await docker('network', 'rm', name);
}, 120_000);

test('ports are offered to services exactly where root could close the host to them', () => {
  expect(settings.servicePorts !== undefined).toBe(process.geteuid?.() === 0);
});

test('a container reaches its neighbours, and is reached at its published port', async () => {
  expect(await reached(hostile, [`${neighbour.address}:8000`])).toEqual([`${neighbour.address}:8000`]);
  const { hostPort } = hostile;
  await expect(run('bash', ['-c', `cat </dev/tcp/127.0.0.1/${hostPort}`])).resolves.toMatchObject({
    stdout: containers[0],
  });
});

if (settings.servicePorts !== undefined) {
  test('a container reaches neither the host, at any of its addresses, nor another container’s network', async () => {
    const { port } = onHost.address() as AddressInfo;
    const hostAddresses = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address);
    expect(hostAddresses).toEqual(expect.arrayContaining([own.gateway, other.gateway]));
    const closed = [...hostAddresses.map((address) => `${address}:${port}`), `${stranger.address}:8000`];
    expect(await reached(hostile, closed)).toEqual([]);
  });

  test('nor a machine beyond the host, also while Docker’s own chain of rules is out of the way', async () => {
    const beyond = await machineBeyond();
    const [inDockersChain, behind] = [await rule('filter', 'DOCKER-USER'), await rule('mangle', 'POSTROUTING')];
    try {
      const startedMs = performance.now();
      expect(await reached(hostile, [beyond.address])).toEqual([]);
      // A service that tries is told so, and does not hang.
      expect(performance.now() - startedMs).toBeLessThan(2_500);
      await iptables('-D', inDockersChain);
      expect(await reached(hostile, [beyond.address])).toEqual([]);
      // It is the rules that close it: nothing else does.
      await iptables('-D', behind);
      expect(await reached(hostile, [beyond.address])).toEqual([beyond.address]);
    } finally {
      for (const gone of [inDockersChain, behind]) if (!(await isThere(gone))) await iptables('-I', gone);
      await beyond.remove();
    }
    expect(await reached(hostile, [beyond.address])).toEqual([]);
  });
}

interface Rule {
  readonly table: string;
  readonly chain: string;
  readonly match: readonly string[];
}

/** Of this installation; there is one in a chain. */
async function rule(table: string, chain: string): Promise<Rule> {
  const { stdout } = await run('iptables-save', ['-t', table]);
  const start = `-A ${chain} `;
  const found = stdout.split('\n').find((line) => line.startsWith(start) && line.includes(settings.installation));
  return { table, chain, match: found!.slice(start.length).split(' ') };
}

function iptables(command: '-C' | '-D' | '-I', { table, chain, match }: Rule): Promise<unknown> {
  return run('iptables', ['--wait', '-t', table, command, chain, ...match]);
}

function isThere(looked: Rule): Promise<boolean> {
  return iptables('-C', looked).then(
    () => true,
    () => false,
  );
}

/** A network name space that this host is the gateway of, with a server in it. */
async function machineBeyond(): Promise<{ readonly address: string; readonly remove: () => Promise<void> }> {
  const space = `firewall-${tag}`;
  const [near, far] = [`fw${tag}a`, `fw${tag}b`];
  // RFC 2544 keeps these addresses for measuring: no network has them.
  const subnet = `198.18.${Number.parseInt(tag.slice(0, 2), 16)}`;
  const ip = (...args: readonly string[]): Promise<unknown> => run('ip', args);
  await ip('netns', 'add', space);
  await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', space);
  await ip('address', 'add', `${subnet}.1/24`, 'dev', near);
  await ip('link', 'set', near, 'up');
  await ip('-n', space, 'address', 'add', `${subnet}.2/24`, 'dev', far);
  await ip('-n', space, 'link', 'set', far, 'up');
  await ip('-n', space, 'route', 'add', 'default', 'via', `${subnet}.1`);
  const server = spawn('ip', ['netns', 'exec', space, process.execPath, '-e', answering('beyond')]);
  await new Promise((resolve) => server.stdout.once('data', resolve));
  const remove = async (): Promise<void> => {
    server.kill();
    await ip('link', 'delete', near);
    await ip('netns', 'delete', space);
  };
  return { address: `${subnet}.2:8000`, remove };
}
