/** Networks of environments on a real daemon, the engine in them, and what a container on one of them can reach. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { freeSubnet, isWithin } from '#docker';
import { markLabels } from '#kernel';
import type { EffectSpecs } from '#protocol';
import { DockerProxy, waitUntil } from '#testing';
import { EffectsWorld, facts } from './effects-world.ts';
import { docker } from './engine-world.ts';

const LONG = 120_000;
/** Also what the engine lets in by its profile `private`. */
const POOL = '10.213.0.0/16';
const GONE = '0'.repeat(64);

let world: EffectsWorld;
beforeAll(async () => {
  world = await EffectsWorld.make({ pool: POOL });
}, LONG);
afterAll(() => world.remove(), LONG);
afterEach(() => world.endClients());

const run = promisify(execFile);

/** @returns what the script said, on either stream */
async function inside(containerId: string, script: string): Promise<string> {
  const env = { ...process.env, DOCKER_HOST: world.engine.dockerHost };
  const { stdout, stderr } = await run('docker', ['exec', containerId, 'bash', '-c', script], { env });
  return stdout + stderr;
}

/** Which of these addresses take a connection, asked from where the script runs, each with its own patience. */
async function reached(
  ask: (script: string) => Promise<string>,
  addresses: readonly string[],
): Promise<readonly string[]> {
  const tries = addresses.map((address) => {
    const [host, port] = address.split(':');
    return `(timeout 3 bash -c ': </dev/tcp/${host}/${port}' 2>/dev/null && echo ${address}) &`;
  });
  const said = await ask(`${tries.join('\n')}\nwait`);
  return said
    .split('\n')
    .filter((line) => line !== '')
    .sort();
}

const reaches = (containerId: string, addresses: readonly string[]): Promise<readonly string[]> =>
  reached((script) => inside(containerId, script), addresses);

const hostReaches = (addresses: readonly string[]): Promise<readonly string[]> =>
  reached(async (script) => (await run('bash', ['-c', script])).stdout, addresses);

interface Network {
  readonly environmentId: string;
  readonly networkId: string;
  readonly subnet: string;
  readonly spec: EffectSpecs['join-network'];
}

async function network(environmentId: string = randomUUID()): Promise<Network> {
  const owner = { type: 'environment', id: environmentId } as const;
  const made = facts(await world.engine.perform('network', { owner, pool: POOL }));
  const networkId = made['networkId'] as string;
  const engineContainerId = world.engine.identities.containerId!;
  return {
    environmentId,
    networkId,
    subnet: made['subnet'] as string,
    spec: { environmentId, networkId, engineContainerId },
  };
}

const removeNetwork = ({ environmentId, networkId }: Network): ReturnType<typeof world.engine.perform> =>
  world.engine.perform('remove-network', { owner: { type: 'environment', id: environmentId }, networkId });

const join = async ({ spec }: Network): Promise<unknown> => facts(await world.engine.perform('join-network', spec));
const leave = async ({ spec }: Network): Promise<unknown> => facts(await world.engine.perform('leave-network', spec));

/**
 * A container of somebody who has got hold of a service, out of the engine's image and, where it listens, with our own Node.
 * @returns its id
 */
async function stranger(networkId: string, more: { readonly listens?: boolean } = {}): Promise<string> {
  const listening = {
    // Whoever asks may be gone before it is answered, which is not to end the listener.
    Entrypoint: [
      '/node',
      '-e',
      "require('net').createServer((socket) => socket.on('error', () => {}).end('hello\\n')).listen(8000)",
    ],
    ExposedPorts: { '8000/tcp': {} },
  };
  const container = await docker.createContainer({
    Image: world.engine.identities.imageId!,
    Entrypoint: ['bash', '-c', 'exec sleep infinity'],
    ...(more.listens === true ? listening : {}),
    Labels: { 'surefoot.installation': world.engine.installation },
    User: 'root',
    HostConfig: {
      NetworkMode: networkId,
      Init: true,
      Mounts: [{ Type: 'bind', Source: realpathSync(process.execPath), Target: '/node', ReadOnly: true }],
      ...(more.listens === true ? { PortBindings: { '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] } } : {}),
    },
  });
  await container.start();
  return container.id;
}

async function addressOf(containerId: string, networkId: string): Promise<string> {
  const { NetworkSettings } = await docker.getContainer(containerId).inspect();
  const found = Object.values(NetworkSettings.Networks).find(({ NetworkID }) => NetworkID === networkId);
  return found?.IPAddress ?? '';
}

const remove = (containerId: string): Promise<unknown> =>
  docker.getContainer(containerId).remove({ force: true, v: true });

describe('an environment’s network', () => {
  test(
    'leads to its engine, and neither to the host nor to any other network, as tried from a container on it',
    async () => {
      const [own, other] = [await network(), await network()];
      await join(own);
      await join(other);
      const inOwn = await stranger(own.networkId);
      const neighbour = await stranger(other.networkId, { listens: true });
      const onHost = createServer((socket) => socket.destroy());
      await new Promise<void>((resolve) => onHost.listen(0, '0.0.0.0', resolve));
      try {
        const { port } = onHost.address() as { port: number };
        const hostAddresses = Object.values(networkInterfaces())
          .flatMap((addresses) => addresses ?? [])
          .filter(({ family, internal }) => family === 'IPv4' && !internal)
          .map(({ address }) => address);
        // The address that its gateway would have, which the host must not have.
        const gateway = freeSubnet(own.subnet, [], 28)!.gateway;
        const engineId = world.engine.identities.containerId!;
        const [onOther, onEngines] = [
          await addressOf(engineId, other.networkId),
          await addressOf(engineId, world.engine.identities.networkId!),
        ];
        const neighbours = `${await addressOf(neighbour, other.networkId)}:8000`;
        await waitUntil('the neighbour listens', async () => (await reaches(neighbour, [neighbours])).length > 0);
        const onHostAddresses = hostAddresses.map((address) => `${address}:${port}`).sort();
        const closed = [`${gateway}:${port}`, `${gateway}:22`, `${onOther}:5432`, `${onEngines}:5432`];
        expect(await reaches(inOwn, ['db:5432', neighbours, ...onHostAddresses, ...closed])).toEqual(['db:5432']);
        // The host's end of the bridge has an IPv6 address of its own, and this container none to come from.
        expect(await inside(inOwn, 'grep -v " lo$" /proc/net/if_inet6 || true')).toBe('');
        // What keeps them apart is not that nothing listens.
        expect(onHostAddresses.length).toBeGreaterThan(0);
        expect(await hostReaches(onHostAddresses)).toEqual(onHostAddresses);
        expect(await reaches(neighbour, ['db:5432', neighbours])).toEqual([neighbours, 'db:5432'].sort());
      } finally {
        onHost.close();
        await Promise.all([inOwn, neighbour].map(remove));
        for (const one of [own, other]) await leave(one);
      }
    },
    LONG,
  );

  test(
    'is where a login of the environment comes in from, by the profile for services and by no other',
    async () => {
      const env = await world.create(await world.environment('inside'));
      const own = await network(env.id);
      await join(own);
      const container = await stranger(own.networkId);
      const login = (): Promise<string> =>
        inside(
          container,
          `PGPASSWORD='${env.passwords.app}' psql -XAt 'host=db user=${env.names.logins.app} dbname=${env.names.database} sslmode=require' -c 'select 1' 2>&1 || true`,
        );
      expect(await login()).toContain('no pg_hba.conf entry');
      const profiles = ['local', 'private'];
      expect(facts(await world.act(env, 'rules', { environmentId: env.id, names: env.names, profiles }))).toEqual({
        profiles,
      });
      expect(await login()).toBe('1\n');
      await remove(container);
      await leave(own);
    },
    LONG,
  );

  test(
    'B067: forty of them come out of our pool, the engine is in each, and the daemon’s own pools are not touched',
    async () => {
      const networks: Network[] = [];
      for (let count = 0; count < 40; count += 1) networks.push(await network());
      expect(new Set(networks.map(({ subnet }) => subnet)).size).toBe(40);
      expect(networks.every(({ subnet }) => isWithin(POOL, subnet) && subnet.endsWith('/28'))).toBe(true);
      for (const one of networks) await join(one);
      // Whatever its pools are, they have a place for somebody else's network.
      const probe = await docker.createNetwork({ Name: `probe-${randomUUID()}` });
      const { IPAM } = await docker.getNetwork(probe.id).inspect();
      await docker.getNetwork(probe.id).remove();
      expect(IPAM?.Config?.map(({ Subnet = '' }) => isWithin(POOL, Subnet))).toEqual([false]);
      const last = await stranger(networks[39]!.networkId);
      expect(await reaches(last, ['db:5432'])).toEqual(['db:5432']);
      await remove(last);
      for (const one of networks) {
        await leave(one);
        expect(facts(await removeNetwork(one))).toEqual({});
      }
    },
    LONG * 2,
  );

  test('B057: the same try again finds what it made the first time', async () => {
    const owner = { type: 'environment', id: randomUUID() } as const;
    const token = randomUUID();
    const first = await world.engine.perform('network', { owner, pool: POOL }, { token });
    expect(await world.engine.perform('network', { owner, pool: POOL }, { token })).toEqual(first);
    expect(facts(first)).toEqual({ networkId: expect.any(String), subnet: expect.stringMatching(/\/28$/) });
  });

  test('that is there under our mark, but open, is not what was asked for: it goes, and that is refused', async () => {
    const id = randomUUID();
    const token = randomUUID();
    const free = freeSubnet('10.214.0.0/28', [], 28)!;
    for (const [shape, said] of [
      [{ IPAM: { Config: [{ Subnet: '10.213.255.240/28' }] } }, /internal is false; .*inhibit_ipv4 is not set/],
      [
        {
          Internal: true,
          Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
          IPAM: { Config: [{ Subnet: free.subnet }] },
        },
        /subnets are 10\.214\.0\.0\/28/,
      ],
    ] as const) {
      const { id: networkId } = await docker.createNetwork({
        Name: `surefoot-${token}`,
        Labels: markLabels({ installation: world.engine.installation, kind: 'network', id, token }),
        ...shape,
        IPAM: { Config: shape.IPAM.Config.map((config) => ({ ...config })) },
      });
      const owner = { type: 'environment', id } as const;
      expect(await world.engine.perform('network', { owner, pool: POOL }, { token })).toEqual({
        outcome: 'refused',
        reason: { code: 'network_differs', message: expect.stringMatching(said) },
      });
      await expect(docker.getNetwork(networkId).inspect()).rejects.toMatchObject({ statusCode: 404 });
    }
  });

  test('B079: of another installation, under our name, is neither taken, nor joined, nor left, nor removed', async () => {
    const environmentId = randomUUID();
    const token = randomUUID();
    const owner = { type: 'environment', id: environmentId } as const;
    const foreign = await docker.createNetwork({
      Name: `surefoot-${token}`,
      Internal: true,
      Labels: markLabels({ installation: randomUUID(), kind: 'network', id: environmentId, token }),
      IPAM: { Config: [{ Subnet: '10.213.255.224/28' }] },
    });
    const refusal = { outcome: 'refused', reason: { code: 'foreign_object' } };
    const engineContainerId = world.engine.identities.containerId!;
    const spec = { environmentId, networkId: foreign.id, engineContainerId };
    try {
      expect(await world.engine.perform('network', { owner, pool: POOL }, { token })).toMatchObject(refusal);
      expect(await world.engine.perform('port-network', { environmentId, pool: POOL }, { token })).toMatchObject(
        refusal,
      );
      await docker.getNetwork(foreign.id).connect({ Container: engineContainerId });
      for (const kind of ['join-network', 'leave-network'] as const)
        expect(await world.engine.perform(kind, spec)).toMatchObject(refusal);
      expect(await world.engine.perform('remove-network', { owner, networkId: foreign.id })).toMatchObject(refusal);
      expect(await addressOf(engineContainerId, foreign.id)).not.toBe('');
      // Nor is somebody else's container taken for the engine.
      const own = await network();
      const container = await stranger(own.networkId);
      for (const kind of ['join-network', 'leave-network'] as const)
        expect(await world.engine.perform(kind, { ...own.spec, engineContainerId: container })).toMatchObject(refusal);
      await remove(container);
    } finally {
      await docker.getNetwork(foreign.id).disconnect({ Container: engineContainerId });
      await docker.getNetwork(foreign.id).remove();
    }
  });

  test('that still has something in it is not removed, and that is known', async () => {
    const own = await network();
    const container = await stranger(own.networkId);
    const owner = { type: 'environment', id: own.environmentId } as const;
    const { Name } = await docker.getContainer(container).inspect();
    const told: string[] = [];
    const progress = (text: string): void => void told.push(text);
    const spec = { owner, networkId: own.networkId };
    expect(await world.engine.perform('remove-network', spec, { deadlineMs: 2_000, progress })).toMatchObject({
      outcome: 'refused',
      reason: { code: 'in_use', message: expect.stringContaining(Name.slice(1)) },
    });
    // People who wait for it are told who is in the way, once.
    expect(told).toEqual([expect.stringMatching(new RegExp(`^waits for network surefoot-.*${Name.slice(1)}`))]);
    // Somebody who only looked around is waited for.
    const removing = world.engine.perform('remove-network', spec, { progress });
    await waitUntil('it waits', () => told.length > 1);
    await remove(container);
    expect([facts(await removing), facts(await removeNetwork(own))]).toEqual([{}, { alreadyAbsent: true }]);
  });

  test(
    'is removed although its engine is still in it, joins late, or rests in it; a neighbour stays connected',
    async () => {
      const { engineContainerId } = (await network()).spec;
      const engine = docker.getContainer(engineContainerId);
      const networksOfEngine = async (): Promise<readonly string[]> =>
        Object.keys((await engine.inspect()).NetworkSettings.Networks).sort();
      const before = await networksOfEngine();
      const neighbour = await network();
      await join(neighbour);
      const withNeighbour = await networksOfEngine();

      const still = await network();
      await join(still);
      expect(facts(await removeNetwork(still))).toEqual({});
      expect(await networksOfEngine()).toEqual(withNeighbour);

      // The engine has left, and an earlier join, whose answer was lost, comes about right before the network goes.
      const late = await network();
      const proxy = await DockerProxy.inFrontOf(world.engine.dockerHost);
      try {
        let joins = 0;
        proxy.rule(async (call) => {
          if (/^DELETE \/networks/.test(call) && (joins += 1) === 1) await join(late);
          return 'pass' as const;
        });
        const owner = { type: 'environment', id: late.environmentId } as const;
        const spec = { owner, networkId: late.networkId };
        const through = { dockerHost: proxy.dockerHost };
        expect(facts(await world.engine.perform('remove-network', spec, through))).toEqual({});
        expect(joins).toBe(2);
      } finally {
        await proxy.close();
      }
      expect(await networksOfEngine()).toEqual(withNeighbour);

      const [rests, meanwhile] = [await network(), await network()];
      await engine.stop({ t: 30 });
      await join(rests);
      expect(facts(await removeNetwork(rests))).toEqual({});
      // A network has nobody in it who rests, and goes; what the engine says of it would keep it from starting.
      await join(meanwhile);
      const relay = await DockerProxy.inFrontOf(world.engine.dockerHost);
      try {
        const owner = { type: 'environment', id: meanwhile.environmentId } as const;
        relay.once(/^POST .*disconnect/, { status: 500, body: { message: 'not now' } });
        const spec = { owner, networkId: meanwhile.networkId };
        const through = { dockerHost: relay.dockerHost };
        expect(facts(await world.engine.perform('remove-network', spec, through))).toEqual({});
      } finally {
        await relay.close();
      }
      const engineId = world.engine.place.engineId;
      for (const kind of ['engine-start', 'engine-ready'] as const)
        facts(await world.engine.perform(kind, { engineId, containerId: engineContainerId }));
      expect(await networksOfEngine()).toEqual(withNeighbour);
      expect(facts(await removeNetwork(neighbour))).toEqual({});
      expect(await networksOfEngine()).toEqual(before);
    },
    LONG,
  );

  test('is not left by an engine of another installation that somebody put there', async () => {
    const own = await network();
    const owner = { type: 'environment', id: own.environmentId } as const;
    const other = await docker.createContainer({
      Image: world.engine.identities.imageId!,
      Entrypoint: ['sleep', 'infinity'],
      Labels: markLabels({ installation: randomUUID(), kind: 'engine', id: randomUUID(), token: randomUUID() }),
      HostConfig: { NetworkMode: own.networkId, Init: true },
    });
    try {
      await other.start();
      const spec = { owner, networkId: own.networkId };
      expect(await world.engine.perform('remove-network', spec, { deadlineMs: 2_000 })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'in_use' },
      });
      expect((await docker.getNetwork(own.networkId).inspect()).Containers).toHaveProperty(other.id);
    } finally {
      await remove(other.id);
    }
    expect(facts(await removeNetwork(own))).toEqual({});
  });
});

describe('the engine in a network', () => {
  test(
    'joins and leaves as often as it is asked, while connections through its published port stay as they are',
    async () => {
      const env = await world.create(await world.environment('undisturbed'));
      const client = await world.login(env, 'app');
      await client.query('create temporary table kept (a int)');
      const own = await network(env.id);
      const long = client.query('select pg_sleep(1), pg_backend_pid() as pid');
      for (let round = 0; round < 5; round += 1) {
        const joined = await join(own);
        expect(joined).toEqual({ address: expect.stringMatching(/^10\.213\./) });
        expect(await join(own)).toEqual(joined);
        await (await world.login(env, 'readonly')).query('select 1');
        expect([await leave(own), await leave(own)]).toEqual([{}, { alreadyAbsent: true }]);
      }
      const [{ pid }] = (await long).rows as [{ pid: number }];
      expect((await client.query('select pg_backend_pid() as pid, count(*) from kept')).rows).toEqual([
        { pid, count: '0' },
      ]);
      expect(facts(await removeNetwork(own))).toEqual({});
    },
    LONG,
  );

  test('that was put there by hand, under no alias, leaves and joins again', async () => {
    const own = await network();
    await docker.getNetwork(own.networkId).connect({ Container: own.spec.engineContainerId });
    await join(own);
    const container = await stranger(own.networkId);
    expect(await reaches(container, ['db:5432'])).toEqual(['db:5432']);
    await remove(container);
    await leave(own);
  });

  test(
    'is there again after it was restarted, and after its server ended without a checkpoint',
    async () => {
      const own = await network();
      await join(own);
      const container = await stranger(own.networkId);
      const { engineContainerId } = own.spec;
      const engine = docker.getContainer(engineContainerId);
      const startedAt = async (): Promise<string> => (await engine.inspect()).State.StartedAt;
      const back = (): Promise<unknown> =>
        waitUntil('the engine answers in its network', async () => (await reaches(container, ['db:5432'])).length > 0);
      await engine.restart({ t: 30 });
      await back();
      const before = await startedAt();
      await inside(engineContainerId, 'kill -QUIT 1');
      await waitUntil('the daemon has started it again', async () => (await startedAt()) !== before);
      await back();
      await world.engine.perform('engine-ready', {
        engineId: world.engine.place.engineId,
        containerId: engineContainerId,
      });
      expect(await join(own)).toEqual({ address: await addressOf(engineContainerId, own.networkId) });
      await remove(container);
      await leave(own);
    },
    LONG,
  );

  test(
    'joins and leaves while it rests, and starts although a network was removed by hand meanwhile',
    async () => {
      const [kept, left, lost] = [await network(), await network(), await network()];
      const { engineContainerId } = kept.spec;
      const engine = docker.getContainer(engineContainerId);
      await join(left);
      await join(lost);
      await engine.stop({ t: 30 });
      expect(await join(kept)).toEqual({ address: null });
      expect([await leave(left), await leave(left)]).toEqual([{}, { alreadyAbsent: true }]);
      await docker.getNetwork(lost.networkId).remove();
      expect([await leave(lost), await leave(lost)]).toEqual([{}, { alreadyAbsent: true }]);
      const engineId = world.engine.place.engineId;
      for (const kind of ['engine-start', 'engine-ready'] as const)
        facts(await world.engine.perform(kind, { engineId, containerId: engineContainerId }));
      const container = await stranger(kept.networkId);
      expect(await reaches(container, ['db:5432'])).toEqual(['db:5432']);
      expect(await addressOf(engineContainerId, left.networkId)).toBe('');
      await remove(container);
      await leave(kept);
    },
    LONG,
  );

  test('that is gone, or whose network is gone, cannot join and has left', async () => {
    const own = await network();
    const withoutEngine = { ...own.spec, engineContainerId: GONE };
    const withoutNetwork = { ...own.spec, networkId: GONE };
    expect(await world.engine.perform('join-network', withoutEngine)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'engine_missing' },
    });
    expect(await world.engine.perform('join-network', withoutNetwork)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'network_missing' },
    });
    for (const spec of [withoutEngine, withoutNetwork])
      expect(await world.engine.perform('leave-network', spec)).toEqual({
        outcome: 'applied',
        facts: { alreadyAbsent: true },
      });
  });
});

describe('the network for published ports', () => {
  test(
    'is what the host reaches a service through, beside its own, and leads to no other network',
    async () => {
      const own = await network();
      const { environmentId } = own;
      const ports = facts(await world.engine.perform('port-network', { environmentId, pool: POOL }));
      const portNetworkId = ports['networkId'] as string;
      expect(ports).toEqual({ networkId: portNetworkId, subnet: expect.stringMatching(/^10\.213\..*\/28$/) });
      expect(
        await world.engine.perform('remove-port-network', { environmentId: randomUUID(), networkId: portNetworkId }),
      ).toMatchObject({ outcome: 'refused', reason: { code: 'foreign_object' } });
      await join(own);
      const container = await stranger(own.networkId, { listens: true });
      await docker.getNetwork(portNetworkId).connect({ Container: container });
      await docker.getContainer(container).restart({ t: 0 });
      const { NetworkSettings } = await docker.getContainer(container).inspect();
      const hostPort = NetworkSettings.Ports['8000/tcp']?.[0]?.HostPort;
      await waitUntil('it answers on the host', async () => {
        const { stdout } = await run('bash', ['-c', `timeout 2 cat </dev/tcp/127.0.0.1/${hostPort} || true`]);
        return stdout === 'hello\n';
      });
      const engineAddress = await addressOf(own.spec.engineContainerId, world.engine.identities.networkId!);
      expect(await reaches(container, ['db:5432', `${engineAddress}:5432`])).toEqual(['db:5432']);
      await remove(container);
      await leave(own);
      for (const expected of [{}, { alreadyAbsent: true }])
        expect(
          facts(await world.engine.perform('remove-port-network', { environmentId, networkId: portNetworkId })),
        ).toEqual(expected);
    },
    LONG,
  );
});

describe('the role of a profile', () => {
  const make = (profile: string): ReturnType<typeof world.engine.perform> =>
    world.engine.perform('profile-role', { engineId: world.engine.place.engineId, profile });

  test('is there in a new engine, is made in one without it, and can do nothing', async () => {
    expect(facts(await make('private'))).toEqual({ profile: 'private', alreadyThere: true });
    expect(facts(await make('office'))).toEqual({ profile: 'office' });
    // Its members are whom it is for, and are no right of its own.
    const env = await world.create(await world.environment('member'));
    const profiles = ['local', 'office'];
    facts(await world.act(env, 'rules', { environmentId: env.id, names: env.names, profiles }));
    expect(facts(await make('office'))).toEqual({ profile: 'office', alreadyThere: true });
  });

  test.each([
    ['logs in', 'alter role surefoot_profile_hall login'],
    ['makes databases', 'alter role surefoot_profile_hall createdb'],
    ['is in another role', 'grant pg_read_all_data to surefoot_profile_hall'],
    ['was granted something', 'grant select on pg_authid to surefoot_profile_hall'],
    ['owns something', 'create schema hall authorization surefoot_profile_hall'],
  ])('that somebody made and that %s is refused', async (_what, statement) => {
    await world.sql('create role surefoot_profile_hall nologin');
    await world.sql(statement);
    expect(await make('hall')).toMatchObject({ outcome: 'refused', reason: { code: 'foreign_object' } });
    await world.sql('drop owned by surefoot_profile_hall; drop role surefoot_profile_hall');
  });
});
