/** The command line as people and CI jobs run it: `bin/surefoot`, on the stack of the test run. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { homeFromEnvironment, loadSettings } from '#settings';

const PROGRAM = resolve('bin/surefoot');
const settings = loadSettings(homeFromEnvironment(process.env));

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function surefoot(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
  return new Promise((done, reject) => {
    const child = spawn(PROGRAM, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SUREFOOT_HOME: settings.home, ...env },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code) => done({ code: code ?? -1, stdout, stderr }));
  });
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const run = await surefoot([...args, '--json']);
  expect(run).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(run.stdout) as T;
}

interface Environment {
  readonly id: string;
  readonly state: string;
}

interface Login {
  readonly tier: string;
  readonly user: string;
  readonly password: string;
  readonly uri: string;
}

const name = `cli ${randomUUID().slice(0, 8)} O'Grün`;
let environment: Environment;

beforeAll(async () => {
  environment = await json<Environment>('env', 'create', name, '--wait');
});

afterAll(async () => {
  await surefoot(['env', 'delete', environment.id, '--wait', '--yes']);
});

test('env create --wait is idempotent, also when several run at once', async () => {
  const runs = await Promise.all([1, 2, 3].map(() => json<Environment>('env', 'create', name, '--wait')));
  expect(runs.map(({ id }) => id)).toEqual([environment.id, environment.id, environment.id]);
  expect(environment.state).toBe('ready');
});

test('without --wait a taken name is a conflict', async () => {
  expect(await surefoot(['env', 'create', name])).toMatchObject({ code: 3, stdout: '' });
});

test('an environment is found by name and by id, and is in the list', async () => {
  expect((await json<Environment>('env', 'show', name)).id).toBe(environment.id);
  expect((await json<Environment>('env', 'show', environment.id)).id).toBe(environment.id);
  expect((await json<Environment[]>('env', 'list')).map(({ id }) => id)).toContain(environment.id);
});

test('credentials are what logs in', async () => {
  const { logins } = await json<{ logins: Login[] }>('env', 'credentials', name);
  expect(logins.map(({ tier }) => tier).sort()).toEqual(['app', 'migrate', 'readonly']);
  for (const { uri, user } of logins) {
    const client = new pg.Client({ connectionString: uri });
    await client.connect();
    expect((await client.query<{ user: string }>('select session_user as user')).rows).toEqual([{ user }]);
    await client.end();
  }
});

describe('psql', () => {
  let folder: string;

  beforeAll(() => {
    // Says what it was given, as far as others could see it, and what the password file holds.
    folder = mkdtempSync(join(tmpdir(), 'psql-'));
    const script = `#!/bin/sh
for argument; do printf 'arg %s\\n' "$argument"; done
env | sed 's/^/env /'
printf 'file %s\\n' "$(cat "$PGPASSFILE")"
stat -L -c 'mode %a' "$PGPASSFILE"
exit 3
`;
    writeFileSync(join(folder, 'psql'), script);
    chmodSync(join(folder, 'psql'), 0o755);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  test('it gets the login, and the password in neither arguments nor environment; its exit code is ours', async () => {
    const { logins } = await json<{ logins: Login[] }>('env', 'credentials', name, '--tier', 'readonly');
    const { password, user } = logins[0]!;
    const run = await surefoot(['psql', name, '--tier', 'readonly', '--', '-c', 'select 1'], {
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
      PGPASSWORD: 'not this one',
      PGHOSTADDR: '192.0.2.1',
    });
    expect(run).toMatchObject({ code: 3, stderr: '' });
    const lines = run.stdout.trim().split('\n');
    const args = lines.filter((line) => line.startsWith('arg '));
    expect(args.slice(0, 3)).toEqual(['arg -c', 'arg select 1', 'arg --dbname']);
    expect(args[3]).toContain(`user='${user.replaceAll("'", "\\'")}'`);
    expect(args[3]).toContain(`sslmode='verify-full'`);
    const visible = lines.filter((line) => !line.startsWith('file ')).join('\n');
    expect(visible).not.toContain(password);
    expect(visible).not.toMatch(/PGPASSWORD|PGHOSTADDR|SUREFOOT_/);
    expect(lines.filter((line) => line.startsWith('file '))[0]).toMatch(
      new RegExp(`^file localhost:\\d+:\\*:.*:${password}$`),
    );
    expect(lines).toContain('mode 600');
  });

  test('where it is not installed, that is said', async () => {
    const bare = join(folder, 'bare');
    const node = process.execPath;
    const run = await new Promise<Run>((done) => {
      const child = spawn(node, [resolve('dist/apps/cli/src/main.js'), 'psql', name], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: bare, SUREFOOT_HOME: settings.home },
      });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      child.on('close', (code) => done({ code: code ?? -1, stdout: '', stderr }));
    });
    expect(run).toMatchObject({ code: 5, stderr: expect.stringContaining('psql is not installed') });
  });
});

test('an environment is made, watched and deleted by its commands', async () => {
  const other = `${name} 2`;
  const accepted = await json<{ id: string; environmentId: string }>('env', 'create', other);
  expect((await json<{ state: string }>('op', 'watch', accepted.id)).state).toBe('succeeded');
  const refused = await surefoot(['env', 'delete', other]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  expect(await surefoot(['env', 'delete', other, '--wait', '--yes'])).toMatchObject({ code: 0 });
  expect((await surefoot(['env', 'show', other])).code).toBe(3);
  expect((await json<Environment>('env', 'show', accepted.environmentId)).state).toBe('deleted');
  const operations = await json<{ kind: string }[]>('op', 'list', '--environment', accepted.environmentId);
  expect(operations.map(({ kind }) => kind)).toEqual(['environment.delete', 'environment.create']);
});

test('elsewhere, address and key of the environment are enough', async () => {
  const env = { SUREFOOT_HOME: '/nonexistent', SUREFOOT_URL: settings.url, SUREFOOT_API_KEY: settings.apiKey };
  expect(await surefoot(['project', 'show', 'default'], env)).toMatchObject({ code: 0, stderr: '' });
  expect(await surefoot(['project', 'list'], { ...env, SUREFOOT_API_KEY: 'sfk_wrong' })).toMatchObject({ code: 3 });
  expect(await surefoot(['project', 'list'], { ...env, SUREFOOT_URL: 'http://127.0.0.1:9' })).toMatchObject({
    code: 5,
  });
  expect(await surefoot(['project', 'list'], { SUREFOOT_HOME: '/nonexistent' })).toMatchObject({ code: 5 });
});

test('doctor finds a running installation well, and shows no secret', async () => {
  const { findings } = await json<{ findings: { check: string; status: string; detail: string }[] }>('doctor');
  expect(findings.filter(({ status }) => status === 'failed')).toEqual([]);
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining([
      'files',
      'docker',
      'catalog',
      'broker',
      'processes',
      'lock',
      'passes',
      'receipts',
      'gateway',
    ]),
  );
  const text = JSON.stringify(findings);
  for (const secret of [settings.apiKey!, new URL(settings.catalogUrl).password, new URL(settings.brokerUrl).password])
    expect(text).not.toContain(secret);
});
