import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { ActResult } from '#effects';
import { askForGeneration } from '#engines';
import type { FreshConnections } from '#postgres';
import { abandon, connectAdmin } from '#postgres';
import type { EffectSpecs } from '#protocol';
import type { EngineWorld } from './engine-world.ts';
import { docker, engineWorld, removeWorlds } from './engine-world.ts';

const LONG = 120_000;

let world: EngineWorld;
/** What the last publication reported: the catalog keeps it as `rule_generations.digest`. */
let digest: string;

beforeAll(async () => {
  world = await engineWorld();
  await world.create();
  digest = world.facts('rule-file')['digest'] as string;
  const client = await connectAdmin(world.place, 'surefoot_control', { statementTimeoutMs: 20_000 });
  for (const statement of [
    `create role "Door 1" nologin in role surefoot_profile_local`,
    `create role login_one login password 'one' in role "Door 1"`,
    `create role login_free login password 'free' replication`,
    `create database "Door 1"`,
    `create database other`,
  ])
    await client.query(statement);
  abandon(client);
}, LONG);

afterAll(removeWorlds, LONG);

function rulePath(): string {
  return join(world.place.confFolder, 'pg_hba.conf');
}

function spec(generation: number, cidrs?: readonly string[]): EffectSpecs['rule-file'] {
  return {
    engineId: world.place.engineId,
    generation,
    profiles: [{ name: 'local', cidrs: cidrs ?? world.identities.localCidrs ?? [] }],
    port: world.place.port,
    previousDigest: digest,
  };
}

function digestOf(result: ActResult): string {
  if (result.outcome !== 'applied') throw new Error(JSON.stringify(result));
  return result.facts['digest'] as string;
}

async function inForce(generation: number): Promise<boolean> {
  return (await askForGeneration(world.place, generation)).asked;
}

/** @returns `in`, or the SQLSTATE of the refusal */
async function login(
  user: string,
  database: string,
  more: Partial<pg.ClientConfig> & { replication?: string } = {},
): Promise<string> {
  const client = new pg.Client({
    host: 'localhost',
    port: world.place.port,
    user,
    password: user.replace('login_', ''),
    database,
    ssl: { ca: readFileSync(world.place.caFile, 'utf8') },
    ...more,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return 'in';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  } finally {
    abandon(client);
  }
}

const NO_RULE = '28000';

describe('rules in force', () => {
  test('are those of the file: generation 1 is asked for, another one is not', async () => {
    expect(await inForce(1)).toBe(true);
    expect(await askForGeneration(world.place, 2)).toMatchObject({ asked: false, sqlState: NO_RULE });
    expect(await inForce(0)).toBe(false);
  });

  test('B037: a login reaches its own database and no other, and only over TLS', async () => {
    expect(await login('login_one', 'Door 1')).toBe('in');
    for (const database of ['other', 'postgres', 'template1', 'surefoot_control'])
      expect(await login('login_one', database)).toBe(NO_RULE);
    expect(await login('login_one', 'Door 1', { ssl: false })).toBe(NO_RULE);
    expect(await login('login_free', 'Door 1')).toBe(NO_RULE);
    expect(await login('postgres', 'postgres')).toBe(NO_RULE);
  });

  test('B039: no rule lets a replication connection in, not even of a role that may replicate', async () => {
    expect(await login('login_free', 'postgres', { replication: 'true' })).toBe(NO_RULE);
    expect(await login('login_one', 'Door 1', { replication: 'database' })).not.toBe('in');
  });
});

describe('a new generation', () => {
  test(
    'withdraws what it no longer lists, and the one before is no longer in force',
    async () => {
      const published = await world.perform('rule-file', spec(2, ['10.255.255.0/24']));
      expect(published).toMatchObject({ outcome: 'applied', facts: { generation: 2 } });
      expect([await inForce(1), await inForce(2)]).toEqual([false, true]);
      expect(await login('login_one', 'Door 1')).toBe(NO_RULE);
      expect(readFileSync(`${rulePath()}.previous`, 'utf8')).toContain('generation=1\n');
      digest = digestOf(published);
    },
    LONG,
  );

  test(
    'of the same rules is a new number, and lets in as before',
    async () => {
      const published = await world.perform('rule-file', spec(3));
      expect(published).toMatchObject({ outcome: 'applied', facts: { generation: 3 } });
      expect(await login('login_one', 'Door 1')).toBe('in');
    },
    LONG,
  );

  test(
    'B044: the same one again writes nothing and reloads nothing',
    async () => {
      const before = { file: statSync(rulePath()), reloads: reloads(await world.log()) };
      const again = await world.perform('rule-file', spec(3));
      expect(again).toMatchObject({ outcome: 'applied', facts: { generation: 3 } });
      expect({ ino: statSync(rulePath()).ino, mtimeMs: statSync(rulePath()).mtimeMs }).toEqual({
        ino: before.file.ino,
        mtimeMs: before.file.mtimeMs,
      });
      expect(reloads(await world.log())).toBe(before.reloads);
      digest = digestOf(again);
    },
    LONG,
  );

  test(
    'that was written and never loaded is loaded and proven when it is done again',
    async () => {
      // As after a crash between the rename and the reload.
      const loaded = readFileSync(rulePath());
      const published = await world.perform('rule-file', spec(4));
      const written = readFileSync(rulePath());
      writeFileSync(rulePath(), loaded);
      await docker.getContainer(world.identities.containerId!).kill({ signal: 'SIGHUP' });
      await until(() => inForce(3));
      writeFileSync(rulePath(), written);
      expect(await inForce(4)).toBe(false);
      expect(await world.perform('rule-file', spec(4))).toEqual(published);
      expect(await inForce(4)).toBe(true);
      digest = digestOf(published);
    },
    LONG,
  );
});

describe('what is never installed', () => {
  test(
    'B042: rules that cannot be written are refused before anything is touched',
    async () => {
      const before = readFileSync(rulePath(), 'utf8');
      for (const cidr of ['10.0.0.1/8', 'all', '10.0.0.0/8\nhost all all all trust'])
        expect(await world.perform('rule-file', spec(5, [cidr]))).toMatchObject({
          outcome: 'refused',
          reason: { code: 'rule_file_invalid' },
        });
      expect(readFileSync(rulePath(), 'utf8')).toBe(before);
    },
    LONG,
  );

  test(
    'B042: a file in which the server finds an error is taken back before any reload',
    async () => {
      const before = { text: readFileSync(rulePath(), 'utf8'), reloads: reloads(await world.log()) };
      const complaining = {
        take: async () => ({
          query: () => Promise.resolve({ rows: [{ line: 5, error: 'not to its taste' }] }),
          end: () => Promise.resolve(),
        }),
      } as unknown as FreshConnections;
      expect(await world.perform('rule-file', spec(5), { connections: complaining })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'rule_file_invalid', message: expect.stringContaining('line 5: not to its taste') as unknown },
      });
      expect(readFileSync(rulePath(), 'utf8')).toBe(before.text);
      expect(reloads(await world.log())).toBe(before.reloads);
      expect(await inForce(4)).toBe(true);
    },
    LONG,
  );

  test(
    'a file that somebody edited is foreign: it stays as it is, and what is not ours is named',
    async () => {
      const ours = readFileSync(rulePath(), 'utf8');
      const edited = `${ours}host all all 192.168.0.0/16 trust\n`;
      writeFileSync(rulePath(), edited);
      expect(await world.perform('rule-file', spec(5))).toMatchObject({
        outcome: 'refused',
        reason: {
          code: 'foreign_object',
          message: expect.stringContaining('not ours: host all all 192.168.0.0/16 trust') as unknown,
        },
      });
      expect(readFileSync(rulePath(), 'utf8')).toBe(edited);
      writeFileSync(rulePath(), ours);
    },
    LONG,
  );

  test(
    'over another file of ours than the expected one it is refused too',
    async () => {
      const wrong = { ...spec(5), previousDigest: '0'.repeat(64) };
      expect(await world.perform('rule-file', wrong)).toMatchObject({
        outcome: 'refused',
        reason: { code: 'foreign_object' },
      });
    },
    LONG,
  );

  test(
    'while another process holds the file’s lock it is refused in time, with nothing done',
    async () => {
      const holder = spawn('flock', [join(world.place.folder, 'rules.lock'), 'sleep', '60'], { detached: true });
      try {
        await until(async () => !(await isFree(join(world.place.folder, 'rules.lock'))));
        expect(await world.perform('rule-file', spec(5), { deadlineMs: 1_000 })).toMatchObject({
          outcome: 'refused',
          reason: { code: 'rule_file_locked' },
        });
      } finally {
        process.kill(-holder.pid!, 'SIGKILL');
      }
    },
    LONG,
  );

  test(
    'under a token that is revoked it is refused',
    async () => {
      const token = randomUUID();
      const fences = join(world.place.folder, '..', '..', 'fences');
      mkdirSync(fences, { recursive: true });
      writeFileSync(join(fences, token), '');
      expect(await world.perform('rule-file', spec(5), { token })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'revoked' },
      });
    },
    LONG,
  );

  test(
    'without a server that could check it nothing is begun',
    async () => {
      const before = readFileSync(rulePath(), 'utf8');
      await docker.getContainer(world.identities.containerId!).stop();
      expect(await world.perform('rule-file', spec(5), { deadlineMs: 1_000 })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'engine_unreachable' },
      });
      expect(readFileSync(rulePath(), 'utf8')).toBe(before);
    },
    LONG,
  );
});

function reloads(log: string): number {
  return log.split('received SIGHUP').length;
}

async function isFree(path: string): Promise<boolean> {
  const probe = spawn('flock', ['--nonblock', path, 'true']);
  return new Promise((resolve) => probe.once('exit', (code) => resolve(code === 0)));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await holds())) if (performance.now() > end) throw new Error('waited in vain');
}
