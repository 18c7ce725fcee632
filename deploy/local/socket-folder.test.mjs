import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { isOwnFolder, removeSocketFolder, shortSocketFolder } from './socket-folder.mjs';

/** @type {import('./installation.mjs').Installation} */
const installation = { version: 1, id: '5f2c8a7e-0000-4000-8000-000000000000', block: '10.64.0.0/20' };
/** @type {string} */
let parent;
/** @type {string} */
let base;
/** @type {string} */
let folder;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'surefoot-sockets-'));
  base = join(parent, 'surefoot');
  folder = shortSocketFolder(installation, base);
  await mkdir(base);
});
afterEach(() => rm(parent, { recursive: true, force: true }));

test('the folder of an installation goes with all its engines, and those of others stay', async () => {
  const other = join(base, '00000000');
  for (const each of [folder, other]) await mkdir(join(each, 'a1b2c3d4'), { recursive: true });
  await writeFile(join(folder, 'a1b2c3d4', '.s.PGSQL.5432.lock'), '');
  await removeSocketFolder(folder);
  assert.equal(existsSync(folder), false);
  assert.equal(existsSync(other), true);
});

test('the last one takes the folder around it along; nothing there is fine', async () => {
  await mkdir(folder);
  await removeSocketFolder(folder);
  assert.equal(existsSync(base), false);
  await removeSocketFolder(folder);
});

test('a link in its place leads nowhere', async () => {
  const precious = join(parent, 'precious');
  await mkdir(precious);
  await symlink(precious, folder);
  assert.equal(await isOwnFolder(folder), false);
  await removeSocketFolder(folder);
  assert.equal(existsSync(precious), true);
});
