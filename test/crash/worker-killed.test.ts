/**
 * The worker is killed with SIGKILL at random moments of creates and deletes, and `npm start` follows each time.
 *
 * The oracle counts what the engine executed, by its statement log, and looks at its system catalogs; it does not read our
 * ledger. Names that hold a token instead of an environment's name are told apart by the rename that follows in the same
 * log; only for those that were never renamed, `tokens` says whose they are. SUREFOOT_SEED replays a run.
 */
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EnvironmentView, OperationView } from '#testing';
import { InstallationUnderTest } from '#testing';
import type { ReceiptOnDisk } from './kills.ts';
import { hasWitness, killWorker, npmStart, random, receipts, table } from './kills.ts';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const KILLS = 20;
/**
 * What is started and has no witness blocks in this version, unless it may be repeated. That is many of the kills, but each
 * blocks no more than the one operation in hand. It goes down to 1 % once recovery can fence and look.
 */
const BLOCKED_SHARE_MAX = 0.75;
const ROLES_PER_ENVIRONMENT = 5;
const seed = Number(process.env['SUREFOOT_SEED'] ?? randomInt(2 ** 31));
/** Also of a replay in the same installation: names are taken once. */
const prefix = `killed-${Date.now().toString(36)}-`;
const since = new Date().toISOString();

/** Kills are spread over a create as long as one takes here and now, when nobody disturbs it. */
async function timeOfCreate(): Promise<number> {
  const from = performance.now();
  const { id } = await installation.ready(`${prefix}undisturbed`);
  const takesMs = performance.now() - from;
  await installation.ended((await installation.remove(id)).id);
  return takesMs;
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

/** Texts that the engine carried out: what it logged before it began, without what it then answered with an error. */
function executedIn(log: string): readonly string[] {
  const failed: string[] = [];
  const begun: string[] = [];
  // An entry goes on over lines that begin with a tab.
  for (const entry of log.split(/\n(?!\t)/)) {
    const [, pid, level, text] =
      /^\S+ \S+ \S+ \[(\d+)\] .*?(LOG: {2}statement|LOG: {2}execute [^:]+|STATEMENT): (.*)$/s.exec(entry) ?? [];
    if (pid === undefined || level === undefined || text === undefined) continue;
    (level === 'STATEMENT' ? failed : begun).push(`${pid} ${text.trim()}`);
  }
  for (const entry of failed) {
    const at = begun.lastIndexOf(entry);
    if (at >= 0) begun.splice(at, 1);
  }
  return begun;
}

/** Quoted names behind `keyword` in all of these texts, each as often as it stands there. */
function named(texts: readonly string[], keyword: string): readonly string[] {
  return texts.flatMap((text) =>
    [...text.matchAll(new RegExp(`\\b${keyword} "((?:[^"]|"")+)"`, 'g'))].map(([, name]) => name!),
  );
}

/** Which operation's effect a token was given out for. */
async function ownersOf(databases: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
  const catalog = await installation.catalog();
  const { rows } = await catalog.query<{ token: string; environment: string | null }>(
    `select replace(t.token::text, '-', '') as token, o.environment_id as environment
       from tokens t join effects e on e.id = t.effect_id join operations o on o.id = e.operation_id`,
  );
  await catalog.end();
  const byToken = new Map(rows.map(({ token, environment }) => [token, environment]));
  return new Map(databases.map((name) => [name, byToken.get(name.split('_').at(-1) ?? '') ?? null]));
}

async function columnOf(statement: string): Promise<readonly string[]> {
  const administrator = await installation.administrator();
  const { rows } = await administrator.query<{ name: string }>(statement);
  await administrator.end();
  return rows.map(({ name }) => name);
}

/** Databases under a name that only a database in the making, or one being removed, has. */
const unpublished = (): Promise<readonly string[]> =>
  columnOf(`select datname as name from pg_database where datname ~ '^surefoot_(attempt|tombstone)_'`);

beforeAll(() => logStatements('ddl'));
afterAll(() => logStatements('none'));

test(`a worker that is killed at ${KILLS} random moments loses nothing and does nothing twice (seed ${seed})`, async () => {
  const next = random(seed);
  const before = await unpublished();
  const operations: string[] = [];
  const inHand: ReceiptOnDisk[] = [];
  const takesMs = await timeOfCreate();
  let deletable: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const kept = new Set(receipts(installation).map(({ effectId }) => effectId));
    const started: OperationView[] = [];
    started.push(await installation.create(`${prefix}${kill}`));
    if (next() < 0.5) {
      for (const id of deletable) started.push(await installation.remove(id));
      deletable = [];
    }
    operations.push(...started.map(({ id }) => id));
    await setTimeout(Math.floor(next() * takesMs));
    await killWorker(installation);
    inHand.push(...receipts(installation).filter(({ effectId }) => !kept.has(effectId)));
    await npmStart(installation);
    const ended = await Promise.all(started.map(({ id }) => installation.ended(id, 90_000)));
    // One worker has one operation in hand.
    expect(ended.filter(({ state }) => state === 'blocked').length).toBeLessThanOrEqual(1);
    deletable.push(
      ...ended
        .filter(({ kind, state }) => kind === 'environment.create' && state === 'succeeded')
        .map(({ environmentId }) => environmentId ?? ''),
    );
  }

  const ended = await Promise.all(operations.map((id) => installation.operation(id)));
  const left = receipts(installation);
  process.stdout.write(
    table(`${KILLS} kills, seed ${seed}`, inHand, new Set(left.map(({ effectId }) => effectId)), ended),
  );
  expect(inHand.length).toBeGreaterThan(0);
  // Nothing is lost: each has ended, or blocks and says why; a kill is never a failure of what was asked.
  expect(ended.filter(({ state }) => state !== 'succeeded' && state !== 'blocked')).toEqual([]);
  expect(ended.filter(({ state, reason }) => state === 'blocked' && reason?.code === undefined)).toEqual([]);
  const blocked = ended.filter(({ state }) => state === 'blocked').map(({ id }) => id);
  expect(blocked.length / ended.length).toBeLessThanOrEqual(BLOCKED_SHARE_MAX);
  // A receipt is left for each of them, and for nothing else: started, and nothing says how it ended.
  const ours = left.filter(({ operationId }) => operations.includes(operationId));
  expect(ours.map(({ operationId }) => operationId).sort()).toEqual([...blocked].sort());
  expect(ours.filter(({ effectId }) => hasWitness(installation, effectId))).toEqual([]);

  const environments = await Promise.all(
    ended
      .filter(({ kind }) => kind === 'environment.create')
      .map(({ environmentId }) => installation.environment(environmentId ?? '')),
  );
  await expectNothingDouble(environments, ended);
  await expectNothingLeft(environments, before);
  // What is ready works.
  for (const { id, state } of environments)
    if (state === 'ready') await (await installation.connect((await installation.logins(id))[0]!)).end();
}, 900_000);

/** Each environment's database and each of its roles were created by one executed statement at most. */
async function expectNothingDouble(
  environments: readonly EnvironmentView[],
  ended: readonly OperationView[],
): Promise<void> {
  const executed = executedIn(await engineLog());
  const attempts = named(executed, 'create database');
  const tokens = await ownersOf(attempts);
  const byName = new Map(environments.map(({ id, connection }) => [connection.database, id]));
  const renamed = new Map(
    executed.flatMap((text) =>
      [...text.matchAll(/alter database "(surefoot_attempt_\w+)" rename to "((?:[^"]|"")+)"/g)].map(
        ([, attempt, name]) => [attempt, byName.get(name!)] as const,
      ),
    ),
  );
  const owners = attempts.map((attempt) => renamed.get(attempt) ?? tokens.get(attempt));
  expect(attempts.filter((_attempt, index) => owners[index] === null)).toEqual([]);

  const roles = named(executed, 'create role');
  for (const { id, name, connection } of environments) {
    const create = ended.find(
      ({ environmentId, kind }) => environmentId === id && kind === 'environment.create',
    )?.state;
    const databases = owners.filter((owner) => owner === id).length;
    const own = roles.filter((role) => role === connection.database || role.startsWith(`${connection.database}_`));
    const counts = { name, create, databases, roles: own.length, differentRoles: new Set(own).size };
    if (create === 'succeeded')
      expect(counts).toEqual({
        ...counts,
        databases: 1,
        roles: ROLES_PER_ENVIRONMENT,
        differentRoles: ROLES_PER_ENVIRONMENT,
      });
    else
      expect(counts).toEqual({
        ...counts,
        databases: Math.min(databases, 1),
        // One transaction makes all of them.
        roles: own.length === 0 ? 0 : ROLES_PER_ENVIRONMENT,
        differentRoles: own.length,
      });
  }
}

/** No database and no role is there but those of environments that are ready, or that wait for a decision. */
async function expectNothingLeft(environments: readonly EnvironmentView[], before: readonly string[]): Promise<void> {
  const states = new Map(environments.map(({ id, state }) => [id, state]));
  const orphans = (await unpublished()).filter((name) => !before.includes(name));
  const owners = await ownersOf(orphans);
  expect(orphans.filter((name) => states.get(owners.get(name) ?? '') !== 'blocked')).toEqual([]);

  const databases = await columnOf('select datname as name from pg_database');
  const roles = await columnOf(`select rolname as name from pg_roles where starts_with(rolname, '${prefix}')`);
  for (const { name, state, connection } of environments) {
    const { database } = connection;
    const found = {
      name,
      state,
      database: databases.includes(database),
      roles: roles.filter((role) => role === database || role.startsWith(`${database}_`)).length,
    };
    if (state === 'ready') expect(found).toEqual({ ...found, database: true, roles: ROLES_PER_ENVIRONMENT });
    else if (state === 'deleted') expect(found).toEqual({ ...found, database: false, roles: 0 });
    else expect(found).toEqual({ ...found, state: 'blocked', roles: found.roles === 0 ? 0 : ROLES_PER_ENVIRONMENT });
  }
}
