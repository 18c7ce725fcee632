/**
 * What a connection costs with ten thousand environments' roles in the engine against ten: whether rules by membership stay
 * of constant size. Only the roles are made (door, owner and three logins each, with their memberships); their databases
 * would take tens of gigabytes, and no rule looks at them.
 *
 * The two states are taken in turns, few roles and many, after the server has tidied up what making or dropping them left:
 * a bulk of that size is the bench's, not an engine's daily life.
 */
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import type { Client } from '#postgres';
import { connectAdmin, connectLogin } from '#postgres';
import type { EngineInUse } from './installation.ts';
import type { Measure } from './report.ts';
import { against } from './report.ts';

const MANY = 10_000;
const CYCLES = 2;
const CONNECTIONS = 50;
/** A transaction's locks must fit into the server's lock table. */
const PORTION = 500;
const PREFIX = 'bench_many_';

export interface Login {
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Milliseconds of each of fifty logins, one after the other, over TLS and the engine's published port. */
async function connections(engine: EngineInUse, login: Login): Promise<readonly number[]> {
  const ca = await readFile(engine.caFile, 'utf8');
  const samples: number[] = [];
  for (let connection = 0; connection < CONNECTIONS; connection += 1) {
    const startedAt = performance.now();
    const client = await connectLogin({ ...login, port: engine.port, ca });
    samples.push(performance.now() - startedAt);
    await client.end();
  }
  return samples;
}

/**
 * The same in turns with logins to the catalog, whose container is on one network: what slows the machine down slows down
 * both.
 */
export async function connectionsBesideCatalog(
  engine: EngineInUse,
  login: Login,
  catalogUrl: string,
): Promise<readonly { readonly engineMs: number; readonly catalogMs: number }[]> {
  const ca = await readFile(engine.caFile, 'utf8');
  const samples: { engineMs: number; catalogMs: number }[] = [];
  for (let connection = 0; connection < CONNECTIONS; connection += 1) {
    const startedAt = performance.now();
    const client = await connectLogin({ ...login, port: engine.port, ca });
    const inAt = performance.now();
    await client.end();
    const catalog = new pg.Client({ connectionString: catalogUrl });
    const beganAt = performance.now();
    await catalog.connect();
    samples.push({ engineMs: inAt - startedAt, catalogMs: performance.now() - beganAt });
    await catalog.end();
  }
  return samples;
}

export async function canConnect(engine: EngineInUse, login: Login): Promise<boolean> {
  try {
    const client = await connectLogin({ ...login, port: engine.port, ca: await readFile(engine.caFile, 'utf8') });
    await client.end();
    return true;
  } catch {
    return false;
  }
}

export async function measureConnectionTime(engine: EngineInUse, login: Login): Promise<Measure> {
  const admin = await connectAdmin(engine, 'surefoot_control', { statementTimeoutMs: 120_000 });
  const few: number[] = [];
  const many: number[] = [];
  try {
    await connections(engine, login);
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      few.push(...(await connections(engine, login)));
      await inPortions((first, last) => makeRoles(admin, first, last));
      await tidy(admin);
      many.push(...(await connections(engine, login)));
      await inPortions((first, last) => dropRoles(admin, first, last));
      await tidy(admin);
    }
    few.push(...(await connections(engine, login)));
    return against(
      {
        name: 'connection, 10,000 environments on the engine against 10',
        unit: 'ms',
        goal: { of: 'ratio', atMost: 1.1 },
        note: `roles and memberships of 10,000 environments, without their databases; ${CYCLES} times in turns`,
      },
      many,
      'a few environments on the engine',
      few,
    );
  } finally {
    await inPortions((first, last) => dropRoles(admin, first, last));
    await admin.end();
  }
}

async function tidy(admin: Client): Promise<void> {
  for (const table of ['pg_authid', 'pg_auth_members', 'pg_shdepend', 'pg_shdescription', 'pg_db_role_setting'])
    await admin.query(`vacuum (analyze) ${table}`);
  await admin.query('checkpoint');
}

async function inPortions(work: (first: number, last: number) => Promise<void>): Promise<void> {
  for (let first = 1; first <= MANY; first += PORTION) await work(first, Math.min(first + PORTION - 1, MANY));
}

async function makeRoles(admin: Client, first: number, last: number): Promise<void> {
  await admin.query(`
    do $$ begin
      for number in ${first}..${last} loop
        execute format('create role %I nologin; create role %I nologin; create role %I login in role %I, %I; create role %I login in role %I; create role %I login in role %I; grant surefoot_profile_local to %I',
          '${PREFIX}' || number || '_owner', '${PREFIX}' || number,
          '${PREFIX}' || number || '_migrate', '${PREFIX}' || number || '_owner', '${PREFIX}' || number,
          '${PREFIX}' || number || '_app', '${PREFIX}' || number,
          '${PREFIX}' || number || '_readonly', '${PREFIX}' || number,
          '${PREFIX}' || number);
      end loop;
    end $$`);
}

async function dropRoles(admin: Client, first: number, last: number): Promise<void> {
  await admin.query(`
    do $$ begin
      for number in ${first}..${last} loop
        execute format('drop role if exists %I, %I, %I, %I, %I', '${PREFIX}' || number || '_owner', '${PREFIX}' || number,
          '${PREFIX}' || number || '_migrate', '${PREFIX}' || number || '_app', '${PREFIX}' || number || '_readonly');
      end loop;
    end $$`);
}
