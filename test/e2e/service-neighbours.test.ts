/**
 * What a hostile container can reach: its own database, the other services of its environment, and nothing else. Tried from
 * inside, as root, in a service with a published port (which has a second network) and in one without.
 */
import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { InstallationUnderTest } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const env = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
const image = installation.setting('SUREFOOT_ENGINE_IMAGE');
const tag = Date.now().toString(36);
const WAIT = 'exec sleep 3600';

interface Tried {
  readonly code: number;
  readonly output: string;
}

async function docker(...args: readonly string[]): Promise<string> {
  return (await run('docker', args, { env })).stdout.trim();
}

/** A script in a container, as root: what a service's image can do at most. */
async function inside(container: string, script: string, ...args: readonly string[]): Promise<Tried> {
  try {
    const { stdout } = await run('docker', ['exec', '-u', '0', container, 'bash', '-c', script, 'sh', ...args], {
      env,
    });
    return { code: 0, output: stdout.trim() };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: `${stdout}${stderr}`.trim() };
  }
}

/** `open` when a TCP connection came about within two seconds. */
async function connection(container: string, address: string, port: number): Promise<string> {
  const { code } = await inside(container, 'timeout 2 bash -c "exec 3<>/dev/tcp/$1/$2"', address, String(port));
  return code === 0 ? 'open' : 'closed';
}

/** Which of these answer. */
async function openOf(
  container: string,
  addresses: readonly string[],
  ports: readonly number[],
): Promise<readonly string[]> {
  const pairs = addresses.flatMap((address) => ports.map((port) => [address, port] as const));
  const answers = await Promise.all(
    pairs.map(async ([address, port]) => [address, port, await connection(container, address, port)] as const),
  );
  return answers.filter(([, , answer]) => answer === 'open').map(([address, port]) => `${address}:${port}`);
}

async function addressesOf(container: string): Promise<readonly string[]> {
  const networks = JSON.parse(await docker('inspect', '-f', '{{json .NetworkSettings.Networks}}', container)) as Record<
    string,
    { readonly IPAddress: string }
  >;
  return Object.values(networks).map(({ IPAddress }) => IPAddress);
}

async function containerOf(environmentId: string, service: string): Promise<string> {
  return docker(
    ...['ps', '-q', '--no-trunc', '--filter', `label=surefoot.environment=${environmentId}`],
    ...['--filter', `label=surefoot.service=${service}`],
  );
}

interface World {
  readonly id: string;
  readonly database: string;
  readonly open: string;
  readonly closed: string;
}

let host: Server;
let hostPort: number;
let own: World;
let other: World;
let engine: string;
const created: string[] = [];

async function environment(name: string): Promise<World> {
  const made = await installation.ready(name, {
    services: [
      { name: 'open', image, command: ['bash', '-c', WAIT], ports: [8080], limits: { pids: 64, memory: '64m' } },
      { name: 'closed', image, command: ['bash', '-c', WAIT], secrets: { TOKEN: `secret of ${name}` } },
    ],
  });
  created.push(made.id);
  return {
    id: made.id,
    database: made.connection.database,
    open: await containerOf(made.id, 'open'),
    closed: await containerOf(made.id, 'closed'),
  };
}

beforeAll(async () => {
  // Everything on the host that listens for everybody stands for this one.
  host = createServer((socket) => socket.end()).listen(0, '0.0.0.0');
  await new Promise((resolve) => host.once('listening', resolve));
  hostPort = (host.address() as { readonly port: number }).port;
  own = await environment(`neighbour-a-${tag}`);
  other = await environment(`neighbour-b-${tag}`);
  engine = await docker(
    ...['ps', '-q', '--no-trunc', '--filter', 'label=surefoot.kind=engine'],
    ...['--filter', `label=surefoot.installation=${installation.setting('SUREFOOT_INSTALLATION')}`],
  );
}, 120_000);
afterAll(async () => {
  host.close();
  for (const id of created) await installation.ended((await installation.remove(id)).id);
}, 120_000);

const PSQL = 'psql -XAt "$(cat /run/surefoot/database_url)" -c "$1" 2>&1';

describe.each(['open', 'closed'] as const)('from the service %s', (service) => {
  const self = (): string => own[service];

  test('its own database is reached, encrypted and by the engine’s own certificate', async () => {
    const asked = 'select current_database(), ssl from pg_stat_ssl where pid = pg_backend_pid()';
    expect(await inside(self(), PSQL, asked)).toEqual({ code: 0, output: `${own.database}|t` });
  });

  test('no other database is, whatever the name', async () => {
    for (const name of [other.database, 'postgres', 'template1', 'surefoot_control']) {
      const tried = await inside(
        self(),
        'uri=$(cat /run/surefoot/database_url); psql -XAt "${uri/\\/$1?//$2?}" -c "select 1" 2>&1',
        own.database,
        name,
      );
      expect({ name, ...tried }).toMatchObject({ code: 2, output: expect.stringMatching(/no pg_hba.conf entry/) });
    }
  });

  test('the other service of its environment is reached by name, and no name leads to another environment', async () => {
    const { output } = await inside(
      self(),
      'for name in open closed db; do getent hosts $name > /dev/null && echo $name; done',
    );
    expect(output.split('\n')).toEqual(['open', 'closed', 'db']);
    const addresses = (await Promise.all([addressesOf(other.open), addressesOf(other.closed)])).flat();
    for (const name of ['open', 'closed']) {
      const resolved = (await inside(self(), `getent ahostsv4 ${name} | cut -d' ' -f1 | sort -u`)).output.split('\n');
      expect(resolved.filter((address) => addresses.includes(address))).toEqual([]);
    }
  });

  test('no address of another environment answers, nor does the engine at any address but in its own network', async () => {
    const mine = (await inside(self(), `getent ahostsv4 db | cut -d' ' -f1 | head -1`)).output;
    expect(await connection(self(), mine, 5432)).toBe('open');
    const engines = (await addressesOf(engine)).filter((address) => address !== mine);
    const others = (await Promise.all([addressesOf(other.open), addressesOf(other.closed)])).flat();
    expect(engines.length).toBeGreaterThan(0);
    expect(await openOf(self(), engines, [5432])).toEqual([]);
    // Nothing listens there. A refusal would be an answer of the neighbour all the same, so its silence is asked for.
    const tried = await Promise.all(
      others.map((address) => inside(self(), 'timeout 2 bash -c "exec 3<>/dev/tcp/$1/9" 2>&1', address)),
    );
    expect(tried.filter(({ output }) => /refused/.test(output))).toEqual([]);
  }, 30_000);

  test('no address of the host is, whoever listens there', async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address);
    expect(addresses.length).toBeGreaterThan(1);
    const gateways = (await inside(self(), 'while read -r _ _ hex _; do echo "$hex"; done < /proc/net/route')).output;
    expect(await openOf(self(), [...addresses, ...gatewaysIn(gateways)], [hostPort])).toEqual([]);
  }, 60_000);

  test('nor is a service of the stack, by the port that it has on the host', async () => {
    const ports = ['SUREFOOT_CATALOG_URL', 'SUREFOOT_BROKER_URL', 'SUREFOOT_URL'].map((name) =>
      Number(new URL(installation.setting(name)).port),
    );
    const gateways = gatewaysIn(
      (await inside(self(), 'while read -r _ _ hex _; do echo "$hex"; done < /proc/net/route')).output,
    );
    expect(await openOf(self(), ['127.0.0.1', ...gateways], ports)).toEqual([]);
  }, 60_000);

  test('there is no Docker socket, no folder of the host, no right and no device', async () => {
    const { output: sockets } = await inside(
      self(),
      'find / -xdev -name "docker*.sock" 2>/dev/null; ls /var/run/docker.sock 2>&1',
    );
    expect(sockets).toMatch(/^ls: .*No such file/);
    const { output: status } = await inside(
      self(),
      'grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status',
    );
    expect(status.replaceAll(/\s+/g, ' ')).toBe(
      'CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2',
    );
    const mounts = JSON.parse(await docker('inspect', '-f', '{{json .Mounts}}', self())) as readonly {
      readonly Type: string;
    }[];
    expect(mounts.filter(({ Type }) => Type !== 'volume')).toEqual([]);
    for (const script of [
      'mknod /tmp/sda b 8 0',
      'mount -t tmpfs none /mnt',
      'echo 1 > /proc/sys/net/ipv4/ip_forward',
      'chroot / true',
    ])
      expect({ script, code: (await inside(self(), script)).code }).not.toMatchObject({ code: 0 });
  });
});

test('a service that starts processes without end, or takes memory without end, is held to its limits', async () => {
  const bomb = await inside(own.open, 'for i in $(seq 200); do sleep 5 & done 2>&1; jobs -p | wc -l; kill $(jobs -p)');
  expect(bomb.output).toMatch(/Resource temporarily unavailable|retry/);
  const hungry = await inside(own.open, 'a=x; while :; do a=$a$a; done');
  expect(hungry.code).toBe(137);
  // Neither has harmed anybody else.
  expect(await inside(other.open, PSQL, 'select 1')).toEqual({ code: 0, output: '1' });
}, 60_000);

test('its secrets are files of its own: 0400, in nothing that the daemon shows, and none of a neighbour’s', async () => {
  const listed = await inside(own.closed, "stat -c '%a %U %n' /run/surefoot/* | sort");
  expect(listed.output.split('\n')).toEqual([
    '400 root /run/surefoot/TOKEN',
    '400 root /run/surefoot/database_url',
    '444 root /run/surefoot/ca.pem',
  ]);
  expect((await inside(own.closed, 'cat /run/surefoot/TOKEN')).output).toBe(`secret of neighbour-a-${tag}`);
  const password = new URL((await inside(own.closed, 'cat /run/surefoot/database_url')).output).password;
  expect(password.length).toBeGreaterThan(20);
  for (const shown of [
    await docker('inspect', own.closed),
    (await inside(own.closed, 'env; cat /proc/*/cmdline')).output,
  ]) {
    expect(shown).not.toContain(password);
    expect(shown).not.toContain('secret of');
  }
});

/** Second addresses of networks as /proc/net/route has them, where a bridge has its own. */
function gatewaysIn(hexadecimals: string): readonly string[] {
  return hexadecimals
    .split('\n')
    .filter((hex) => /^[0-9A-F]{8}$/.test(hex) && hex !== '00000000')
    .map((hex) => {
      const [d = 0, c = 0, b = 0, a = 0] = (hex.match(/../g) ?? []).map((byte) => parseInt(byte, 16));
      return `${a}.${b}.${c}.${d + 1}`;
    });
}
