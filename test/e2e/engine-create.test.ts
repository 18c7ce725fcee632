import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { EngineAway, isStopped, observePin, sha256 } from '#engines';
import { renderRuleFile } from '#hba';
import { markLabels } from '#kernel';
import type { Client } from '#postgres';
import { abandon, connectAdmin, connectLogin } from '#postgres';
import type { Pin } from '#protocol';
import { pinDifferences } from '#protocol';
import type { EngineWorld } from './engine-world.ts';
import { docker, engineWorld, plainUser, removeWorlds, runAs } from './engine-world.ts';

afterAll(removeWorlds, 120_000);

const LONG = 120_000;

function pinOf(world: EngineWorld): Pin {
  return world.facts('engine-ready')['pin'] as unknown as Pin;
}

async function observe(world: EngineWorld): Promise<Pin> {
  const client = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 5_000 });
  try {
    return await observePin(world.dockerHost, pinOf(world), (work) => work(client));
  } finally {
    abandon(client);
  }
}

describe('an engine that is made', () => {
  let world: EngineWorld;

  test(
    'is ready, pinned, and found as it was pinned',
    async () => {
      world = await engineWorld();
      await world.create();
      expect(pinDifferences(pinOf(world), await observe(world))).toEqual([]);
      expect(pinOf(world)).toMatchObject({
        containerId: world.identities.containerId,
        volumeName: world.identities.volumeName,
        timeline: 1,
      });
      expect(world.facts('engine-ready')['serverVersion']).toBeGreaterThanOrEqual(150_000);
    },
    LONG,
  );

  test('offers extensions that stay within a database, and none that reach out of it', () => {
    const offered = world.facts('engine-ready')['extensions'];
    expect(offered).toEqual(expect.arrayContaining(['pgcrypto', 'hstore', 'pg_trgm', 'uuid-ossp']));
    for (const name of ['file_fdw', 'dblink', 'postgres_fdw', 'adminpack', 'pageinspect', 'plperlu'])
      expect(offered).not.toContain(name);
  });

  test('B062, B074: has its data inside the named volume, no other volume, and the shared memory that was asked for', async () => {
    const container = await docker.getContainer(world.identities.containerId!).inspect();
    expect(container.Mounts.filter(({ Type }) => Type === 'volume').map(({ Name }) => Name)).toEqual([
      world.identities.volumeName,
    ]);
    const inside = await runInside(
      world,
      'df --output=size -k /dev/shm | tail -1; cat "$SUREFOOT_VOLUME"/pgdata/PG_VERSION',
    );
    expect(inside.trim().split(/\s+/)).toEqual(['262144', expect.stringMatching(/^1\d$/)]);
  });

  test('runs without rights of its own, on a root that it cannot write to', async () => {
    const inside = await runInside(world, 'grep -E "CapEff|NoNewPrivs" /proc/1/status; touch /x 2>&1 || true');
    expect(inside).toMatch(/CapEff:\s+0+\n/);
    expect(inside).toMatch(/NoNewPrivs:\s+1\n/);
    expect(inside).toContain('Read-only file system');
  });

  test('lets nobody into its own databases, and has every one of them from the start', async () => {
    const rows = await ask(
      world,
      `select datname, has_database_privilege('public_probe', oid, 'connect') as open from pg_database`,
      ['create role public_probe login'],
    );
    expect(Object.fromEntries(rows.map((row) => [row['datname'], row['open']]))).toEqual({
      postgres: false,
      template1: false,
      // Nobody connects to it whatever its grants say.
      template0: true,
      surefoot_control: false,
      surefoot_template: false,
    });
    expect(await ask(world, 'select installation, engine, identity, claim_number from surefoot.identity')).toEqual([
      {
        installation: world.installation,
        engine: world.place.engineId,
        identity: world.place.identity,
        // Of the claim under which it was made: the role of the profile for services is made under a token.
        claim_number: '1',
      },
    ]);
  });

  test('has said neither its administrator’s password nor a verifier', async () => {
    const password = readFileSync(world.place.adminPasswordFile, 'utf8');
    const verifier = readFileSync(join(world.place.confFolder, 'administrator.verifier'), 'utf8').trim();
    const container = JSON.stringify(await docker.getContainer(world.identities.containerId!).inspect());
    for (const text of [await world.log(), container]) {
      expect(text).not.toContain(password);
      expect(text).not.toContain(verifier);
      expect(text).not.toContain('SCRAM-SHA-256$');
    }
    expect(
      readdirSync(world.place.confFolder)
        .map((name) => readFileSync(join(world.place.confFolder, name), 'utf8'))
        .join(),
    ).not.toContain(password);
  });

  test('a statement that fails with a secret in it leaves nothing in the server’s log', async () => {
    await expect(ask(world, `create role public_probe password 'not-for-the-log'`)).rejects.toThrow('already exists');
    expect(await world.log()).toContain('role "public_probe" already exists');
    expect(await world.log()).not.toContain('not-for-the-log');
  });

  test('that has moved on keeps its files: making them again is refused, and touches nothing', async () => {
    const before = fingerprints(world);
    expect(await world.perform('engine-files', { engineId: world.place.engineId, name: 'test' })).toMatchObject({
      outcome: 'refused',
      reason: { code: 'foreign_object' },
    });
    expect(fingerprints(world)).toEqual(before);
  });

  test(
    'survives an end without a checkpoint with the same pin, and comes back by itself',
    async () => {
      const containerId = world.identities.containerId!;
      const startedAt = async (): Promise<string> => (await docker.getContainer(containerId).inspect()).State.StartedAt;
      const before = await startedAt();
      // SIGQUIT: the server's own immediate end.
      await runInside(world, 'kill -QUIT 1');
      while ((await startedAt()) === before) await setTimeout(20);
      const ready = await world.perform('engine-ready', { engineId: world.place.engineId, containerId });
      expect(ready).toMatchObject({ outcome: 'applied' });
      expect(pinDifferences(pinOf(world), await observe(world))).toEqual([]);
    },
    LONG,
  );

  test(
    'that is stopped is away, not changed, and is started again by its id',
    async () => {
      const containerId = world.identities.containerId!;
      await docker.getContainer(containerId).stop();
      expect(await isStopped(world.dockerHost, containerId)).toBe(true);
      await expect(
        observePin(world.dockerHost, pinOf(world), () => Promise.reject(new Error('not asked'))),
      ).rejects.toThrow(EngineAway);
      expect(await world.perform('engine-start', { engineId: world.place.engineId, containerId })).toMatchObject({
        outcome: 'applied',
      });
      expect(await world.perform('engine-ready', { engineId: world.place.engineId, containerId })).toMatchObject({
        outcome: 'applied',
      });
      // Again, while it runs: applied, with the same start.
      const again = await world.perform('engine-start', { engineId: world.place.engineId, containerId });
      expect(again).toMatchObject({
        outcome: 'applied',
        facts: { startedAt: (await docker.getContainer(containerId).inspect()).State.StartedAt },
      });
    },
    LONG,
  );

  test(
    'a changed limit, a changed restart policy and an edited configuration each differ from the pin, and are named',
    async () => {
      const container = docker.getContainer(world.identities.containerId!);
      const differing = async (): Promise<readonly string[]> => pinDifferences(pinOf(world), await observe(world));
      const conf = join(world.place.confFolder, 'postgresql.surefoot.conf');
      const text = readFileSync(conf, 'utf8');
      writeFileSync(conf, `${text}fsync = off\n`);
      expect(await differing()).toEqual([expect.stringMatching(/^configurationDigest is /)]);
      writeFileSync(conf, text);
      expect(await differing()).toEqual([]);
      // ALTER SYSTEM is the administrator's to use, and cannot change what matters.
      await ask(world, `alter system set log_statement = 'all'`);
      await ask(world, `alter system set fsync = 'off'`);
      await ask(world, 'select pg_reload_conf()');
      expect(await ask(world, `select setting from pg_settings where name = 'fsync'`)).toEqual([{ setting: 'on' }]);
      expect(await differing()).toEqual([]);
      await container.update({ Memory: 1 << 30, MemorySwap: -1 });
      expect(await differing()).toEqual([expect.stringMatching(/^configurationDigest is /)]);
      await container.update({ RestartPolicy: { Name: 'no' } });
      expect(await differing()).toEqual([expect.stringMatching(/^configurationDigest is /)]);
    },
    LONG,
  );

  test(
    'a container that is gone differs in its id; another engine differs in every field',
    async () => {
      const other = await engineWorld();
      await other.create('rule-file');
      const gone = { ...pinOf(world), containerId: randomUUID() };
      expect(
        pinDifferences(gone, await observePin(world.dockerHost, gone, () => Promise.reject(new Error('not asked')))),
      ).toEqual([`containerId is absent, pinned is ${gone.containerId}`]);
      const fields = pinDifferences(pinOf(world), await observe(other)).map((sentence) => sentence.split(' ')[0]);
      expect(fields).toEqual(['containerId', 'volumeName', 'volumeMark', 'systemIdentifier', 'configurationDigest']);
    },
    LONG,
  );

  test(
    'is removed by its identities, in reverse, and is then absent',
    async () => {
      const { engineId } = world.place;
      const owner = { type: 'engine', id: engineId } as const;
      const { containerId, volumeName, networkId } = world.identities as Required<EngineWorld['identities']>;
      // A volume that is in use is not removed, and that is known.
      expect(await world.perform('remove-volume', { engineId, volumeName }, { deadlineMs: 2_000 })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'in_use' },
      });
      for (const facts of [{}, { alreadyAbsent: true }]) {
        expect(await world.perform('remove-container', { engineId, containerId })).toEqual({
          outcome: 'applied',
          facts,
        });
        expect(await world.perform('remove-volume', { engineId, volumeName })).toEqual({ outcome: 'applied', facts });
        expect(await world.perform('remove-network', { owner, networkId })).toEqual({ outcome: 'applied', facts });
        expect(await world.perform('remove-engine-files', { engineId })).toEqual({ outcome: 'applied', facts });
      }
      expect(existsSync(world.place.folder)).toBe(false);
      await expect(docker.getContainer(containerId).inspect()).rejects.toThrow('404');
    },
    LONG,
  );
});

describe('the first moments of an engine', () => {
  test(
    'B052: on a fresh volume and slow, it is ready when its real server is, which a login over TCP finds at once, and never another one',
    async () => {
      const world = await engineWorld();
      await world.create('engine-start');
      const { engineId } = world.place;
      const { containerId, localCidrs } = world.identities as Required<EngineWorld['identities']>;
      // So that somebody can log in from the start: otherwise that comes with the first rules.
      const rules = { engineId, generation: 0, profiles: [{ name: 'local', cidrs: localCidrs }] };
      writeFileSync(join(world.place.confFolder, 'pg_hba.conf'), renderRuleFile(rules, sha256));
      const container = docker.getContainer(containerId);
      await container.update({ NanoCpus: 300_000_000 });
      expect(await world.perform('engine-start', { engineId, containerId })).toMatchObject({ outcome: 'applied' });

      const servers = new Set<string>();
      const ready = new AbortController();
      const watching = (async () => {
        while (!ready.signal.aborted) {
          const startedAt = await serverStart(world, 'postgres').catch(() => undefined);
          if (startedAt !== undefined) servers.add(startedAt);
          await setTimeout(20);
        }
      })();
      try {
        expect(await world.perform('engine-ready', { engineId, containerId })).toMatchObject({ outcome: 'applied' });
        // One try each, and no patience.
        const [user, password] = ['first_moment', randomUUID()];
        await ask(world, `create database ${user}`, [
          `create role ${user} login password '${password}' in role surefoot_profile_local`,
        ]);
        const ca = readFileSync(world.place.caFile, 'utf8');
        const client = await connectLogin({ port: world.place.port, ca, user, password, database: user });
        const { rows } = await client.query<{ at: string }>(SERVER_START);
        await client.end();
        servers.add(rows[0]?.at ?? '');
      } finally {
        ready.abort();
        await watching;
      }
      servers.add(await serverStart(world, 'surefoot_control'));
      expect(servers.size).toBe(1);
      expect((await container.inspect()).RestartCount).toBe(0);
    },
    LONG,
  );
});

describe('what is there already', () => {
  test(
    'B079: a network, a volume or a container of another installation under our name is refused and stays',
    async () => {
      const world = await engineWorld();
      const { engineId } = world.place;
      const owner = { type: 'engine', id: engineId } as const;
      const foreign = markLabels({ installation: randomUUID(), kind: 'volume', id: engineId, token: randomUUID() });
      const token = randomUUID();
      const refusal = { outcome: 'refused', reason: { code: 'foreign_object' } };
      await docker.createVolume({ Name: `surefoot-${token}`, Labels: foreign });
      const network = await docker.createNetwork({
        Name: `surefoot-${token}`,
        Labels: foreign,
        IPAM: { Config: [{ Subnet: '10.254.253.0/28' }] },
      });
      try {
        expect(await world.perform('volume', { engineId }, { token })).toMatchObject(refusal);
        expect(await world.perform('network', { owner, pool: '10.213.0.0/16' }, { token })).toMatchObject(refusal);
        expect(await world.perform('remove-volume', { engineId, volumeName: `surefoot-${token}` })).toMatchObject(
          refusal,
        );
        expect(await world.perform('remove-network', { owner, networkId: network.id })).toMatchObject(refusal);
        await world.create('engine-container');
        const { imageId, networkId, volumeName } = world.identities as Required<EngineWorld['identities']>;
        const container = await docker.createContainer({
          name: `surefoot-engine-${token}`,
          Image: imageId,
          Labels: foreign,
        });
        try {
          const spec = { engineId, name: 'test', imageId, networkId, volumeName, port: world.place.port };
          expect(await world.perform('engine-container', spec, { token })).toMatchObject(refusal);
          // Nor is a volume used that is not ours: the mount would take it as it is.
          expect(await world.perform('engine-container', { ...spec, volumeName: `surefoot-${token}` })).toMatchObject(
            refusal,
          );
          expect(await world.perform('remove-container', { engineId, containerId: container.id })).toMatchObject(
            refusal,
          );
          expect(await world.perform('engine-start', { engineId, containerId: container.id })).toMatchObject(refusal);
        } finally {
          await container.remove({ v: true });
        }
      } finally {
        await network.remove();
        await docker.getVolume(`surefoot-${token}`).remove();
      }
    },
    LONG,
  );

  test(
    'B057: the same try again finds what it made the first time, and makes nothing',
    async () => {
      const world = await engineWorld();
      await world.create('network');
      const { engineId } = world.place;
      const owner = { type: 'engine', id: engineId } as const;
      const token = randomUUID();
      const twice = async <T>(act: () => Promise<T>): Promise<T> => {
        const first = await act();
        expect(await act()).toEqual(first);
        return first;
      };
      await twice(() => world.perform('engine-files', { engineId, name: 'test' }));
      const network = await twice(() => world.perform('network', { owner, pool: '10.213.0.0/16' }, { token }));
      const volume = await twice(() => world.perform('volume', { engineId }, { token }));
      if (network.outcome !== 'applied' || volume.outcome !== 'applied') throw new Error('not applied');
      await twice(() =>
        world.perform(
          'engine-container',
          {
            engineId,
            name: 'test',
            imageId: world.identities.imageId!,
            networkId: network.facts['networkId'] as string,
            volumeName: volume.facts['volumeName'] as string,
            port: world.place.port,
          },
          { token },
        ),
      );
      const filters = { label: [`surefoot.token=${token}`] };
      expect(await docker.listContainers({ all: true, filters })).toHaveLength(1);
      expect(await docker.listNetworks({ filters })).toHaveLength(1);
    },
    LONG,
  );

  test(
    'B077: a port that is taken is a known refusal, and nothing of ours runs',
    async () => {
      const world = await engineWorld();
      await world.create('engine-start');
      const { createServer } = await import('node:net');
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(world.place.port, '127.0.0.1', resolve));
      try {
        const { containerId } = world.identities as Required<EngineWorld['identities']>;
        expect(await world.perform('engine-start', { engineId: world.place.engineId, containerId })).toMatchObject({
          outcome: 'refused',
          reason: { code: 'port_taken' },
        });
        expect((await docker.getContainer(containerId).inspect()).State.Running).toBe(false);
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    },
    LONG,
  );

  test(
    'B067: a pool that is used up is a clear refusal, before anything is made',
    async () => {
      const world = await engineWorld({ pool: '127.0.0.0/28' });
      await expect(world.create()).rejects.toThrow('network_pool_exhausted');
      expect(
        await docker.listNetworks({ filters: { label: [`surefoot.installation=${world.installation}`] } }),
      ).toEqual([]);
    },
    LONG,
  );

  test(
    'an image that is nowhere is a clear refusal',
    async () => {
      const world = await engineWorld({ image: 'surefoot-test/nowhere:1' });
      await expect(world.create()).rejects.toThrow('image_unavailable');
    },
    LONG,
  );
});

describe('a daemon that is not there', () => {
  test('is waited for, and then nothing was done; a removal is to be made again, and is not refused for good', async () => {
    const world = await engineWorld();
    const { engineId } = world.place;
    const nowhere = { dockerHost: 'unix:///nowhere/docker.sock', deadlineMs: 600 };
    expect(await world.perform('volume', { engineId }, nowhere)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'daemon_unreachable' },
    });
    expect(
      await world.perform('remove-network', { owner: { type: 'engine', id: engineId }, networkId: 'x' }, nowhere),
    ).toMatchObject({
      outcome: 'unknown',
      reason: { code: 'daemon_unreachable' },
    });
  });
});

describe('a plain user of the docker group', () => {
  test(
    'makes an engine whose server reads what is the user’s, and whose socket the user reaches',
    async () => {
      const world = await engineWorld();
      const user = plainUser();
      await runAs(world, user, () => world.create());
      const folder = statSync(world.place.confFolder);
      expect({ uid: folder.uid, gid: folder.gid, mode: folder.mode & 0o777 }).toEqual({ ...user, mode: 0o750 });
      expect(statSync(join(world.place.confFolder, 'pg_hba.conf')).mode & 0o777).toBe(0o640);
      expect(statSync(world.place.adminPasswordFile).mode & 0o777).toBe(0o600);
      expect((await runInside(world, 'id -u; id -g')).trim()).toBe(`999\n${user.gid}`);
    },
    LONG,
  );
});

function fingerprints(world: EngineWorld): readonly string[] {
  return readdirSync(world.place.confFolder).map((name) => {
    const { ino, mtimeMs } = statSync(join(world.place.confFolder, name));
    return `${name} ${ino} ${mtimeMs}`;
  });
}

async function runInside(world: EngineWorld, script: string): Promise<string> {
  return execFileSync('docker', ['exec', world.identities.containerId!, 'bash', '-c', script], {
    env: { ...process.env, DOCKER_HOST: world.dockerHost },
    encoding: 'utf8',
  });
}

const SERVER_START = 'select pg_postmaster_start_time()::text as at';

/** By the socket, where an image's temporary server would answer too. */
async function serverStart(world: EngineWorld, database: string): Promise<string> {
  const client: Client = await connectAdmin(world.place, database, { statementTimeoutMs: 5_000 });
  try {
    return (await client.query<{ at: string }>(SERVER_START)).rows[0]?.at ?? '';
  } finally {
    abandon(client);
  }
}

async function ask(
  world: EngineWorld,
  statement: string,
  before: readonly string[] = [],
): Promise<readonly Record<string, unknown>[]> {
  const client: Client = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 5_000 });
  try {
    for (const preparation of before) await client.query(preparation);
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    abandon(client);
  }
}
