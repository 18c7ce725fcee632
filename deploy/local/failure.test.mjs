import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tryCommand } from './command.mjs';

test('a command that cannot do its work says why, what to do, and nothing of its insides', async (context) => {
  const home = await mkdtemp(join(tmpdir(), 'surefoot-home-'));
  context.after(() => rm(home, { recursive: true, force: true }));
  const script = fileURLToPath(new URL('./stop.mjs', import.meta.url));
  const { code, stderr } = await tryCommand(process.execPath, [script], { env: { PATH: '', SUREFOOT_HOME: home } });
  assert.equal(code, 2);
  const [, what, next, ...more] = stderr.trimEnd().split('\n');
  assert.equal(what, `npm stop could not go on: there is no Surefoot installation in ${home}`);
  assert.match(next ?? '', /^What to do: name its folder in SUREFOOT_HOME/);
  assert.deepEqual(more, []);
});
