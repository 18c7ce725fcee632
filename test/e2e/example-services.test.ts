/** docs/examples/notes, as its README says: images built here, two services, and a database that they reach by a file. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { InstallationUnderTest, waitUntil, type EnvironmentView, type LoginView } from '#testing';

const EXAMPLE = resolve('docs/examples/notes');
const installation = new InstallationUnderTest();
const run = promisify(execFile);
const env = { ...process.env, SUREFOOT_HOME: installation.home };
const surefoot = (...args: readonly string[]): Promise<{ readonly stdout: string }> =>
  run(resolve('bin/surefoot'), args, { env });

/** @returns the lines of both streams: those of a container come on either */
async function docker(...args: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr } = await run('docker', ['-H', installation.setting('DOCKER_HOST'), ...args]);
  return `${stdout}\n${stderr}`.split('\n').filter((line) => line !== '');
}

/** Everything that the daemon has but images. */
async function inDaemon(): Promise<readonly string[]> {
  const lists = [
    docker('ps', '--all', '--quiet', '--no-trunc'),
    docker('network', 'ls', '--quiet', '--no-trunc'),
    docker('volume', 'ls', '--quiet'),
  ];
  return (await Promise.all(lists)).flat().sort();
}

interface Service {
  readonly name: string;
  readonly state: string;
  readonly ports: readonly { readonly container: number; readonly host: number }[];
}

let before: readonly string[];
let environment: EnvironmentView & { readonly services: readonly Service[] };
let logins: readonly LoginView[];

beforeAll(async () => {
  await run(process.execPath, [join(EXAMPLE, 'build.mjs')], { env });
  before = await inDaemon();
  const services = ['--services', join(EXAMPLE, 'services.json')];
  const { stdout } = await surefoot('env', 'create', 'notes', ...services, '--wait', '--json');
  environment = JSON.parse(stdout) as typeof environment;
  logins = await installation.logins(environment.id);
  const owner = await installation.connect(login('migrate'));
  await owner.query(readFileSync(join(EXAMPLE, 'schema.sql'), 'utf8'));
  await owner.end();
}, 300_000);

afterAll(async () => {
  if (environment !== undefined) await installation.request('DELETE', `/v1/environments/${environment.id}`);
});

function login(tier: LoginView['tier']): LoginView {
  return logins.find((candidate) => candidate.tier === tier)!;
}

async function ask(path: string, init?: RequestInit): Promise<{ readonly status: number; readonly body: unknown }> {
  const port = environment.services.flatMap(({ ports }) => ports).find(({ container }) => container === 8080)?.host;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return { status: response.status, body: await response.json() };
}

test('both services run, and only the API has a port of the host', () => {
  expect(environment.services).toMatchObject([
    { name: 'pgbouncer', state: 'running', ports: [] },
    { name: 'notes', state: 'running', ports: [{ container: 8080 }] },
  ]);
});

test('a note that is posted is listed, and is a row of the environment’s database', async () => {
  const text = 'it’s "working", \u{1f40e}';
  expect(await ask('/notes', { method: 'POST', body: JSON.stringify({ text }) })).toMatchObject({ status: 201 });
  expect(await ask('/notes', { method: 'POST', body: '{"text": 1}' })).toMatchObject({ status: 400 });
  expect(await ask('/notes')).toMatchObject({ status: 200, body: [{ text }] });
  const reader = await installation.connect(login('readonly'));
  expect((await reader.query('SELECT text FROM notes')).rows).toEqual([{ text }]);
  await reader.end();
});

test('the API comes through PgBouncer, which speaks TLS to the server', async () => {
  const administrator = await installation.administrator();
  const { rows } = await administrator.query(
    `SELECT DISTINCT a.application_name, s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
      WHERE a.datname = $1 AND a.usename = $2`,
    [environment.connection.database, login('app').user],
  );
  await administrator.end();
  expect(rows).toEqual([{ application_name: expect.any(String), ssl: true }]);
  const [pgbouncer] = await containers('pgbouncer');
  expect((await docker('logs', pgbouncer!)).join('\n')).toContain(
    `login attempt: db=${environment.connection.database} user=${login('app').user}`,
  );
});

test('neither container shows the password to whoever inspects it, or to its own processes', async () => {
  const both = [...(await containers('pgbouncer')), ...(await containers('notes'))];
  expect(both).toHaveLength(2);
  const shown = [...(await docker('inspect', ...both))];
  for (const id of both) {
    const look = 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ';
    shown.push(...(await docker('exec', id, 'bash', '-c', look)), ...(await docker('logs', id)));
  }
  expect(shown.join('\n')).not.toContain(login('app').password);
});

function containers(service: string): Promise<readonly string[]> {
  const ours = ['--filter', `label=surefoot.environment=${environment.id}`];
  return docker('ps', '--quiet', ...ours, '--filter', `label=surefoot.service=${service}`);
}

test('what they say is read through Surefoot', async () => {
  expect(await ask('/nowhere')).toMatchObject({ status: 404 });
  await waitUntil('the log has the request', async () => {
    const { stdout } = await surefoot('env', 'logs', 'notes', 'notes');
    return stdout.includes('GET /nowhere 404');
  });
});

test('a delete leaves nothing of them in the daemon', async () => {
  const { id } = await installation.remove(environment.id);
  expect(await installation.ended(id)).toMatchObject({ state: 'succeeded' });
  expect(await inDaemon()).toEqual(before);
});
