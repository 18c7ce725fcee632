import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MARKER, homeOf, isHome, lockHome, prepareHome, readOwn, removeHome, typed } from './home.mjs';
import { openInstallation, readInstallation, readLocalEnv, writeLocalEnv } from './installation.mjs';
import { LOCAL_ENV_NAMES } from './local-env.mjs';

/** @param {import('node:test').TestContext} context */
async function folder(context) {
  const path = await mkdtemp(join(tmpdir(), 'surefoot-home-'));
  context.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** @param {string} path */
const modeOf = async (path) => ((await stat(path)).mode & 0o777).toString(8);

test('a home is closed to others, and stays the same home', async (context) => {
  const home = join(await folder(context), 'deep', 'home');
  await prepareHome(home);
  const installation = await openInstallation(home);
  await writeLocalEnv(home, Object.fromEntries(LOCAL_ENV_NAMES.map((name) => [name, 'x'])));
  await prepareHome(home);
  assert.deepEqual(await openInstallation(home), installation);
  assert.equal(await isHome(home), true);
  assert.equal((await readLocalEnv(home)).SUREFOOT_URL, 'x');
  assert.deepEqual(await Promise.all([home, join(home, 'run')].map(modeOf)), ['700', '700']);
  assert.deepEqual(await Promise.all(['local.env', MARKER].map((name) => modeOf(join(home, name)))), ['600', '600']);
});

test('a folder with something else in it is not taken', async (context) => {
  const home = await folder(context);
  await writeFile(join(home, 'thesis.txt'), '');
  await chmod(home, 0o755);
  await assert.rejects(prepareHome(home), /is not empty and is not a Surefoot home/);
  assert.equal(await modeOf(home), '755');
  assert.equal(await isHome(home), false);
});

test('a start that was cut short right after the folders were made can be repeated', async (context) => {
  const home = await folder(context);
  await prepareHome(home);
  await (
    await lockHome(home)
  )();
  await writeFile(join(home, `${MARKER}.12ab.tmp`), '');
  await prepareHome(home);
});

test('a link is not followed, be it the home or a file in it', async (context) => {
  const parent = await folder(context);
  await mkdir(join(parent, 'real'));
  await symlink(join(parent, 'real'), join(parent, 'home'));
  await assert.rejects(prepareHome(join(parent, 'home')), /is a symbolic link/);
  await writeFile(join(parent, 'key'), '', { mode: 0o600 });
  await symlink(join(parent, 'key'), join(parent, 'real', 'key'));
  await assert.rejects(readOwn(join(parent, 'real', 'key')), /is a symbolic link/);
});

test('a file that others can read is refused', async (context) => {
  const path = join(await folder(context), 'local.env');
  await writeFile(path, '');
  await chmod(path, 0o640);
  await assert.rejects(readOwn(path), /can be read or written by other users/);
});

test('a home is worked on by one command at a time, and a released one by the next', async (context) => {
  const home = await folder(context);
  await prepareHome(home);
  const release = await lockHome(home);
  await assert.rejects(lockHome(home), new RegExp(`another set-up command is at work on .*process ${process.pid}`));
  await release();
  await (
    await lockHome(home)
  )();
});

test('a removed home is gone, lock file and all', async (context) => {
  const home = join(await folder(context), 'home');
  await prepareHome(home);
  await openInstallation(home);
  const release = await lockHome(home);
  await removeHome(home);
  await release();
  await assert.rejects(stat(home), /ENOENT/);
  assert.equal(await readInstallation(home), undefined);
});

test('a marker of a newer program is refused, not reinterpreted', async (context) => {
  const home = await folder(context);
  await prepareHome(home);
  await writeFile(join(home, MARKER), '{"version": 2}', { mode: 0o600 });
  await assert.rejects(openInstallation(home), /written by a newer program/);
});

test('a command is shown as it works when it is pasted', () => {
  assert.equal(typed('npm stop', homeOf('/src', {}), '/src'), 'npm stop');
  assert.equal(typed('npm stop', '/var/tmp/other', '/src'), 'SUREFOOT_HOME=/var/tmp/other npm stop');
  assert.equal(typed('npm stop', "/it's here", '/src'), `SUREFOOT_HOME='/it'\\''s here' npm stop`);
});
