import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { abandon, connectAdmin } from '#postgres';
import type { EngineWorld } from './engine-world.ts';
import { docker, engineWorld, removeWorlds } from './engine-world.ts';

afterAll(removeWorlds, 120_000);

const LONG = 120_000;

/** A second container on the same volume, as nobody should make it: a port of its own, else the same. */
async function secondContainer(world: EngineWorld, more: { env?: string[] } = {}): Promise<string> {
  const first = await docker.getContainer(world.identities.containerId!).inspect();
  const { Config, HostConfig } = first;
  const container = await docker.createContainer({
    Image: first.Image,
    User: Config.User,
    Entrypoint: Config.Entrypoint,
    Env: [...Config.Env, ...(more.env ?? [])],
    Labels: Config.Labels,
    HostConfig: { ...HostConfig, PortBindings: {}, RestartPolicy: { Name: 'no' } },
  });
  return container.id;
}

async function runToEnd(id: string): Promise<{ readonly code: number; readonly log: string }> {
  const container = docker.getContainer(id);
  await container.start();
  const { StatusCode } = (await container.wait()) as { StatusCode: number };
  return {
    code: StatusCode,
    log: (await container.logs({ stdout: true, stderr: true, follow: false })).toString('utf8'),
  };
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited in vain for: ${what}`);
    await setTimeout(10);
  }
}

describe('never two servers on one volume', () => {
  test(
    'a second container on the volume ends without touching it, and serves once the first is dead',
    async () => {
      const world = await engineWorld();
      await world.create();
      const second = await secondContainer(world);
      const refused = await runToEnd(second);
      expect(refused.code).toBe(75);
      expect(refused.log).toContain('another server holds the lock of this volume');

      const client = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 5_000 });
      await client.query('create table public.kept as select 1 as one');
      abandon(client);
      // A backend lives on for a moment after its postmaster's SIGKILL, and holds the lock as long.
      await docker.getContainer(world.identities.containerId!).update({ RestartPolicy: { Name: 'no' } });
      await docker.getContainer(world.identities.containerId!).kill();
      await docker.getContainer(second).start();
      await until('the second server', async () => {
        try {
          const late = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 5_000 });
          expect((await late.query('select one from public.kept')).rows).toEqual([{ one: 1 }]);
          abandon(late);
          return true;
        } catch {
          return false;
        }
      });
      const first = docker.getContainer(world.identities.containerId!);
      await first.start();
      await until('the first to give up', async () => !(await first.inspect()).State.Running);
      expect((await first.inspect()).State.ExitCode).toBe(75);
    },
    LONG,
  );

  test(
    'a volume that is marked as another engine’s is not served',
    async () => {
      const world = await engineWorld();
      await world.create();
      await docker.getContainer(world.identities.containerId!).stop();
      const stranger = await secondContainer(world, { env: ['SUREFOOT_VOLUME_MARK=surefoot somebody else'] });
      const refused = await runToEnd(stranger);
      expect(refused.code).toBe(78);
      expect(refused.log).toContain('this volume is marked as another engine');
    },
    LONG,
  );

  test(
    'B062: a place that is no mount is not served',
    async () => {
      const world = await engineWorld();
      await world.create('engine-start');
      const elsewhere = await secondContainer(world, { env: ['SUREFOOT_VOLUME=/var/lib/postgresql'] });
      expect(await runToEnd(elsewhere)).toMatchObject({ code: 78 });
    },
    LONG,
  );
});

describe('a data directory is there whole or not at all', () => {
  test(
    'a container that is killed while it builds one builds it again, and is complete',
    async () => {
      const world = await engineWorld();
      await world.create('engine-start');
      const containerId = world.identities.containerId!;
      const container = docker.getContainer(containerId);
      const { engineId } = world.place;
      const moments: string[] = [];
      for (const delayMs of [50, 300, 700]) {
        await container.start();
        await until(
          'the building to begin',
          async () => (await world.log()).split('building').length > moments.length + 1,
        );
        await setTimeout(delayMs);
        await container.kill();
        moments.push((await world.log()).includes('is complete') ? 'complete' : 'building');
      }
      expect(moments[0]).toBe('building');
      expect(await world.perform('engine-start', { engineId, containerId })).toMatchObject({ outcome: 'applied' });
      const ready = await world.perform('engine-ready', { engineId, containerId });
      expect(ready).toMatchObject({ outcome: 'applied', facts: { pin: { volumeName: world.identities.volumeName } } });
      const client = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 5_000 });
      const { rows } = await client.query(`select datname from pg_database where datname like 'surefoot%' order by 1`);
      abandon(client);
      expect(rows).toEqual([{ datname: 'surefoot_control' }, { datname: 'surefoot_template' }]);
    },
    LONG,
  );

  test(
    'a server that ends by itself, again and again, is a known failure with its last words',
    async () => {
      const world = await engineWorld();
      await world.create('engine-container');
      const { engineId, confFolder } = world.place;
      writeFileSync(`${confFolder}/postgresql.surefoot.conf`, 'no_such_setting = 1\n');
      await world.create('engine-ready');
      const containerId = world.identities.containerId!;
      expect(await world.perform('engine-ready', { engineId, containerId })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'engine_exits', message: expect.stringContaining('no_such_setting') as unknown },
      });
    },
    LONG,
  );

  test(
    'B066: an administrator’s password that is not the volume’s is a known failure, found by a login',
    async () => {
      const world = await engineWorld();
      await world.create('engine-ready');
      const { engineId, adminPasswordFile } = world.place;
      writeFileSync(adminPasswordFile, randomUUID());
      const containerId = world.identities.containerId!;
      expect(await world.perform('engine-ready', { engineId, containerId })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'engine_login' },
      });
    },
    LONG,
  );
});
