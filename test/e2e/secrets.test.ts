/**
 * Where a secret must not be: every file of the state folder but the two that hold keys, every log, the catalog, the
 * queue, the command lines and environments of processes, and the engine's own log with everything logged.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EnvironmentView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const name = `secret-${Date.now().toString(36)}`;
const since = new Date().toISOString();
const docker = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
let passwords: readonly string[] = [];
let passwordForms: readonly string[] = [];
let environment: EnvironmentView;
/** Command lines and environments of everything that ran on the machine while we worked. */
const seen: string[] = [];

/**
 * A secret as it could stand somewhere: plain, in a URL, in JSON, in base64 at any offset; and each of these as the bytes of
 * a bytea column, which PostgreSQL shows in hexadecimal.
 */
function forms(secret: string): readonly string[] {
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -4),
  );
  const texts = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), ...shifted];
  return [...new Set([...texts, ...texts.map((text) => Buffer.from(text).toString('hex'))])];
}

function secretsIn(text: string): readonly string[] {
  return passwordForms.filter((form) => text.includes(form));
}

beforeAll(async () => {
  const administrator = await installation.administrator();
  await administrator.query(`alter system set log_statement = 'all'`);
  await administrator.query(`alter system set log_min_error_statement = 'error'`);
  await administrator.query('select pg_reload_conf()');
  await administrator.end();
  let working = true;
  const watching = (async () => {
    while (working) {
      seen.push(...processes());
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  environment = await installation.ready(name, { extensions: ['pgcrypto'] });
  const logins = await installation.logins(environment.id);
  passwords = logins.map(({ password }) => password);
  passwordForms = passwords.flatMap(forms);
  for (const login of logins) await (await installation.connect(login)).end();
  working = false;
  await watching;
}, 60_000);

afterAll(async () => {
  const administrator = await installation.administrator();
  await administrator.query('alter system reset log_statement');
  await administrator.query('alter system reset log_min_error_statement');
  await administrator.query('select pg_reload_conf()');
  await administrator.end();
  await installation.ended((await installation.remove(environment.id)).id);
}, 60_000);

function processes(): readonly string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid))
    .flatMap((pid) => ['cmdline', 'environ'].map((file) => readOrNothing(`/proc/${pid}/${file}`)));
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((entry) => {
    const path = join(folder, entry);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return entry === 'docker' ? [] : filesBelow(path);
    return found?.isFile() === true ? [path] : [];
  });
}

test('the passwords are what a login needs, and long enough to be told apart from anything else', () => {
  expect(passwords).toHaveLength(3);
  expect(new Set(passwords).size).toBe(3);
  for (const password of passwords) expect(password.length).toBeGreaterThanOrEqual(22);
});

test('no password is in any file of the state folder, logs and records included', () => {
  const files = filesBelow(installation.home);
  expect(files.length).toBeGreaterThan(10);
  expect(files.filter((path) => secretsIn(readFileSync(path, 'latin1')).length > 0)).toEqual([]);
});

test('no password was in a command line or environment of any process while the environment was made', () => {
  expect(seen.length).toBeGreaterThan(100);
  expect(seen.filter((text) => secretsIn(text).length > 0)).toEqual([]);
});

test('keys of the installation are in no command line or environment either', () => {
  const keys = ['SUREFOOT_CATALOG_URL', 'SUREFOOT_BROKER_URL'].map(
    (setting) => new URL(installation.setting(setting)).password,
  );
  const all = [...keys, installation.setting('SUREFOOT_API_KEY')];
  expect(seen.filter((text) => all.some((key) => text.includes(key)))).toEqual([]);
});

test('B109: with log_statement = all the engine’s log has no password, and a verifier only in CREATE ROLE', async () => {
  const filter = [
    '--filter',
    `label=surefoot.installation=${installation.setting('SUREFOOT_INSTALLATION')}`,
    '--filter',
    'label=surefoot.kind=engine',
  ];
  const { stdout: ids } = await run('docker', ['ps', '-q', ...filter], { env: docker });
  const log = await waitUntil('the log tells of the create', async () => {
    const { stdout, stderr } = await run('docker', ['logs', '--since', since, ids.trim()], {
      env: docker,
      maxBuffer: 64 * 2 ** 20,
    });
    return (stdout + stderr).includes(`create role "${environment.connection.users.app}"`) && stdout + stderr;
  });
  expect(secretsIn(log)).toEqual([]);
  const verifiers = log.split('\n').filter((line) => line.includes('SCRAM-SHA-256$'));
  expect(verifiers.filter((line) => !/create role/i.test(line))).toEqual([]);
});

test('a password that stood plain in the catalog would be seen, in a bytea column too', async () => {
  const catalog = await installation.catalog();
  const { rows } = await catalog.query<{ text: string }>(
    `select to_jsonb(t)::text as text
       from (values ($1::text, null::bytea), (null, convert_to($1, 'UTF8')), (null, convert_to(encode(convert_to($1, 'UTF8'), 'base64'), 'UTF8')))
            t (plain, sealed)`,
    [passwords[0]],
  );
  await catalog.end();
  expect(rows.map(({ text }) => secretsIn(text).length > 0)).toEqual([true, true, true]);
});

test('no password is anywhere in the catalog, and neither is the key', async () => {
  const key = forms(installation.setting('SUREFOOT_API_KEY'));
  const catalog = await installation.catalog();
  const { rows } = await catalog.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public'`,
  );
  for (const table of rows) {
    const { rows: found } = await catalog.query<{ text: string }>(
      `select to_jsonb(t)::text as text from "${table.name}" t`,
    );
    expect(found.filter(({ text }) => secretsIn(text).length > 0 || key.some((form) => text.includes(form)))).toEqual(
      [],
    );
  }
  await catalog.end();
});

test('a queue message carries an id and a version, and nothing else', async () => {
  const catalog = await installation.catalog();
  const { rows } = await catalog.query<{ message: object }>('select message from outbox');
  await catalog.end();
  expect(rows.length).toBeGreaterThan(0);
  for (const { message } of rows) expect(Object.keys(message).sort()).toEqual(['jobId', 'version']);
});

test('B111: no answer but the credentials holds a password, and the look at them is in the audit', async () => {
  const answers = await Promise.all(
    [
      `/v1/environments/${environment.id}`,
      // By name: in an installation that is in use it is not on the first page.
      `/v1/projects/default/environments?name=${name}`,
      `/v1/operations?environment=${environment.id}`,
    ].map(async (path) => JSON.stringify((await installation.request('GET', path)).body)),
  );
  for (const answer of answers) {
    expect(answer).toContain(environment.id);
    expect(secretsIn(answer)).toEqual([]);
  }
  const catalog = await installation.catalog();
  const { rows } = await catalog.query(`select 1 from audit where subject = $1 and action like '%credentials%'`, [
    environment.id,
  ]);
  await catalog.end();
  expect(rows.length).toBeGreaterThan(0);
});
