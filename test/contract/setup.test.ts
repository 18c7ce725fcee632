/** The set-up program itself, on a home and a catalog of its own beside the stack's. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connect } from 'amqplib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ownDatabase, settings, type OwnDatabase } from './catalog-server.ts';

const PROGRAM = resolve('dist/apps/setup/src/main.js');

let home: string;
let host: string;
let database: OwnDatabase;
let values: Record<string, string>;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'setup-'));
  host = `t${randomUUID().slice(0, 8)}`;
  database = await ownDatabase();
  values = {
    SUREFOOT_URL: 'http://127.0.0.1:1',
    SUREFOOT_API_KEY: 'sfk_first',
    SUREFOOT_INSTALLATION: randomUUID(),
    SUREFOOT_HOST: host,
    SUREFOOT_CATALOG_URL: database.url,
    SUREFOOT_BROKER_URL: settings.brokerUrl,
    DOCKER_HOST: settings.dockerHost,
    SUREFOOT_ENGINE_IMAGE: 'postgres:17',
    SUREFOOT_ENGINE_PORT: '15999',
  };
});

afterEach(async () => {
  rmSync(home, { recursive: true });
  await database.drop();
  const connection = await connect(settings.brokerUrl);
  const channel = await connection.createChannel();
  await channel.deleteQueue(`surefoot.jobs.${host}`);
  await channel.close();
  await connection.close();
});

function setUp(): Promise<{ code: number; stdout: string; stderr: string }> {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  writeFileSync(join(home, 'local.env'), lines.join('\n'), { mode: 0o600 });
  return new Promise((done) => {
    const env = { PATH: process.env['PATH'], SUREFOOT_HOME: home };
    execFile(process.execPath, [PROGRAM], { env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

async function one<Row extends object>(text: string): Promise<Row> {
  const rows = await database.query<Row>(text);
  expect(rows).toHaveLength(1);
  return rows[0]!;
}

test('B157: the first run makes everything, the second finds it and changes nothing', async () => {
  const first = await setUp();
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toContain('requested engine main from postgres:17 on port 15999');
  const second = await setUp();
  expect(second).toMatchObject({ code: 0, stderr: '', stdout: `queue surefoot.jobs.${host} is declared\n` });

  const epoch = JSON.parse(readFileSync(join(home, 'host/epoch'), 'utf8')) as { identity: string };
  expect(epoch).toEqual({ identity: expect.any(String), claimNumber: 0 });
  expect(await one('select id, identity, claim_number::int from hosts')).toEqual({
    id: host,
    identity: epoch.identity,
    claim_number: 0,
  });
  expect(await one('select name from projects')).toEqual({ name: 'default' });
  expect(await one(`select name, role, project_ids, key_hash = sha256('sfk_first') as hashed from api_keys`)).toEqual({
    name: 'admin',
    role: 'admin',
    project_ids: null,
    hashed: true,
  });
  expect(await one('select name, host_id, state, image, port, network_pool from engines')).toEqual({
    name: 'main',
    host_id: host,
    state: 'creating',
    image: 'postgres:17',
    port: 15999,
    network_pool: '10.213.0.0/16',
  });
  const job = await one<{ id: string }>(
    `select j.id from jobs j join operations o on o.id = j.operation_id where o.kind = 'engine.create' and o.state = 'queued'`,
  );
  expect(await one('select exchange, routing_key, message from outbox')).toEqual({
    exchange: '',
    routing_key: `surefoot.jobs.${host}`,
    message: { version: 1, jobId: job.id },
  });
  const audit = await database.query<{ actor: string; action: string }>('select actor, action from audit order by id');
  expect(audit).toEqual([
    { actor: 'setup', action: 'installation.seed' },
    { actor: 'setup', action: 'engine.create' },
  ]);
});

test('two runs at once make one of each', async () => {
  const runs = await Promise.all([setUp(), setUp()]);
  expect(runs.map((run) => [run.code, run.stderr])).toEqual([
    [0, ''],
    [0, ''],
  ]);
  await one('select 1 from engines');
  await one('select 1 from hosts');
});

test('an engine that failed is asked for again; one that is blocked is not', async () => {
  await setUp();
  await database.query(`update engines set state = 'failed'`);
  expect((await setUp()).stdout).toContain('requested engine main');
  await database.query(`update engines set state = 'blocked' where state <> 'failed'`);
  expect((await setUp()).stdout).not.toContain('requested engine');
  expect(await one('select count(*)::int as engines from engines')).toEqual({ engines: 2 });
});

test('a key that was changed in local.env takes effect', async () => {
  await setUp();
  values['SUREFOOT_API_KEY'] = 'sfk_second';
  expect((await setUp()).stdout).toContain('registered API key admin');
  expect(await one(`select key_hash = sha256('sfk_second') as hashed from api_keys`)).toEqual({ hashed: true });
});

test('the catalog of another installation is refused, and nothing in it is changed', async () => {
  await setUp();
  const before = await database.query('select id from audit');
  values['SUREFOOT_INSTALLATION'] = randomUUID();
  const refused = await setUp();
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('belongs to installation') });
  expect(await database.query('select id from audit')).toEqual(before);
});

test('a host that has worked is not set up in an empty catalog: what it did there would be forgotten', async () => {
  await setUp();
  writeFileSync(join(home, 'host/epoch'), JSON.stringify({ identity: randomUUID(), claimNumber: 7 }));
  expect((await setUp()).code).toBe(0);
  await database.query('drop schema public cascade');
  await database.query('create schema public');
  const refused = await setUp();
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Restore the catalog') });
});

test('what a host has for services follows its settings at each set-up, and no more networks than its pool has', async () => {
  const hostServices = (): Promise<Record<string, unknown>> =>
    one('select service_networks_max, service_address, service_ports::text from hosts');
  await setUp();
  expect(await hostServices()).toEqual({
    service_networks_max: 200,
    service_address: '127.0.0.1',
    service_ports: null,
  });
  Object.assign(values, {
    SUREFOOT_NETWORK_POOL: '10.99.0.0/26',
    SUREFOOT_SERVICE_ADDRESS: '127.0.0.2',
    SUREFOOT_SERVICE_PORTS: '20000-20009',
  });
  await setUp();
  expect(await hostServices()).toEqual({
    service_networks_max: 3,
    service_address: '127.0.0.2',
    service_ports: '[20000,20010)',
  });
});

test('an engine whose rules let no service in gets an operation for that, once', async () => {
  await setUp();
  const asked = (): Promise<readonly object[]> =>
    database.query(`select state from operations where kind = 'engine.rules'`);
  await database.query(`update engines set state = 'ready', rule_generation = 1, profiles = '{local}'`);
  await setUp();
  await setUp();
  expect(await asked()).toEqual([{ state: 'queued' }]);
  await database.query(`update operations set state = 'succeeded' where kind = 'engine.rules'`);
  await database.query(`update engines set profiles = '{local,private}'`);
  await setUp();
  expect(await asked()).toHaveLength(1);
});

test('a catalog or a broker that cannot be reached is named, with no password', async () => {
  values['SUREFOOT_CATALOG_URL'] = 'postgres://surefoot:hunter2@127.0.0.1:1/surefoot';
  const catalog = await setUp();
  expect(catalog).toMatchObject({ code: 1, stderr: expect.stringMatching(/catalog.*ECONNREFUSED/) });
  values['SUREFOOT_CATALOG_URL'] = database.url;
  values['SUREFOOT_BROKER_URL'] = 'amqp://surefoot:hunter2@127.0.0.1:1';
  const broker = await setUp();
  expect(broker).toMatchObject({ code: 1, stderr: expect.stringMatching(/broker at 127.0.0.1:1: .*ECONNREFUSED/) });
  expect(catalog.stderr + broker.stderr).not.toContain('hunter2');
});
