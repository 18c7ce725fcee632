/**
 * The worker is killed with SIGKILL at random moments of creates and deletes, and `npm start` follows each time.
 *
 * The oracle counts what the engine executed, by its statement log, and looks at its system catalogs; it does not read our
 * ledger. SUREFOOT_SEED replays a run.
 */
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { OperationView } from '#testing';
import { InstallationUnderTest } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const KILLS = 20;
/** A create takes about half a second here: kills are spread over it and a little beyond. */
const LATEST_KILL_MS = 700;
const seed = Number(process.env['SUREFOOT_SEED'] ?? randomInt(2 ** 31));
const since = new Date().toISOString();
const names: string[] = [];
const operations: string[] = [];

/** mulberry32: small, and the same everywhere. */
function random(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function npmStart(): Promise<void> {
  await run('node', ['deploy/local/start.mjs'], {
    env: { ...process.env, SUREFOOT_HOME: installation.home },
    timeout: 120_000,
  });
}

function killWorker(): void {
  process.kill(Number(readFileSync(join(installation.home, 'run', 'worker.pid'), 'utf8')), 'SIGKILL');
}

async function logStatements(value: 'ddl' | 'none'): Promise<void> {
  const administrator = await installation.administrator();
  await administrator.query(`alter system set log_statement = '${value}'`);
  await administrator.query('select pg_reload_conf()');
  await administrator.end();
}

async function engineLog(): Promise<string> {
  const env = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
  const filter = [
    '--filter',
    `label=surefoot.installation=${installation.setting('SUREFOOT_INSTALLATION')}`,
    '--filter',
    'label=surefoot.kind=engine',
  ];
  const { stdout: ids } = await run('docker', ['ps', '-q', ...filter], { env });
  const { stdout, stderr } = await run('docker', ['logs', '--since', since, ids.trim()], {
    env,
    maxBuffer: 64 * 2 ** 20,
  });
  return stdout + stderr;
}

beforeAll(() => logStatements('ddl'));
afterAll(() => logStatements('none'));

test(`a worker that is killed at ${KILLS} random moments loses nothing and does nothing twice (seed ${seed})`, async () => {
  const next = random(seed);
  let deletable: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const started: OperationView[] = [];
    const name = `killed-${seed.toString(36)}-${kill}`;
    names.push(name);
    started.push(await installation.create(name));
    if (next() < 0.5) {
      for (const id of deletable) started.push(await installation.remove(id));
      deletable = [];
    }
    operations.push(...started.map(({ id }) => id));
    await setTimeout(Math.floor(next() * LATEST_KILL_MS));
    killWorker();
    await npmStart();
    const ended = await Promise.all(started.map(({ id }) => installation.ended(id, 90_000)));
    deletable.push(
      ...ended
        .filter(({ kind, state }) => kind === 'environment.create' && state === 'succeeded')
        .map(({ environmentId }) => environmentId ?? ''),
    );
  }

  const ended = await Promise.all(operations.map((id) => installation.operation(id)));
  const count = (state: string): number => ended.filter((operation) => operation.state === state).length;
  process.stdout.write(
    `kills ${KILLS}, seed ${seed}: ${count('succeeded')} succeeded, ${count('blocked')} blocked, ${count('failed')} failed\n`,
  );
  // Nothing is lost: each has ended, or blocks and says why; a kill is never a failure of what was asked.
  expect(ended.filter(({ state }) => state !== 'succeeded' && state !== 'blocked')).toEqual([]);
  expect(ended.filter(({ state, reason }) => state === 'blocked' && reason?.code === undefined)).toEqual([]);

  // Nothing is double: each role and each database was created by one executed statement at most.
  const log = await engineLog();
  const executed = [...log.matchAll(/create (?:role|database) "(?:[^"]|"")+"/g)].map(([statement]) => statement);
  expect(executed.length).toBeGreaterThan(names.length);
  const doubles = executed.filter((statement, index) => executed.indexOf(statement) !== index);
  expect(doubles).toEqual([]);

  // What is ready works, what is deleted is gone, asked of the engine itself.
  const administrator = await installation.administrator();
  for (const { kind, state, environmentId } of ended.filter((operation) => operation.kind === 'environment.create')) {
    const environment = await installation.environment(environmentId ?? '');
    const { rows } = await administrator.query('select 1 from pg_database where datname = $1', [
      environment.connection.database,
    ]);
    if (environment.state === 'ready') {
      expect({ kind, state, rows: rows.length }).toEqual({ kind, state: 'succeeded', rows: 1 });
      const client = await installation.connect((await installation.logins(environment.id))[0]!);
      await client.end();
    } else if (environment.state === 'deleted') expect(rows).toEqual([]);
    else expect(environment.state).toBe('blocked');
  }
  await administrator.end();
}, 900_000);
