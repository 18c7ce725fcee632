import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startStoppedEngines } from './docker-objects.mjs';
import { progress } from './progress.mjs';

/**
 * @param {readonly string[]} stopped
 * @param {readonly string[]} refused
 */
function daemon(stopped, refused = []) {
  /** @type {string[][]} */
  const asked = [];
  const docker = {
    ids: async (/** @type {string[]} */ args) => {
      asked.push(args);
      return stopped;
    },
    try: async (/** @type {string[]} */ args) => {
      asked.push(args);
      const code = refused.includes(args.at(-1) ?? '') ? 1 : 0;
      return { code, stdout: '', stderr: code === 0 ? '' : 'port is taken', timedOut: false };
    },
  };
  return { asked, docker: /** @type {import('./docker-cli.mjs').Docker} */ (/** @type {unknown} */ (docker)) };
}

/** @param {string[]} said */
const into = (said) => progress((line) => said.push(line));

test('stopped engines of the installation are started, each by its id', async () => {
  const { asked, docker } = daemon(['aaa', 'bbb']);
  await startStoppedEngines(docker, 'id-1', into([]));
  assert.ok(asked[0]?.includes('label=surefoot.installation=id-1'));
  assert.ok(asked[0]?.includes('label=surefoot.kind=engine'));
  assert.ok(asked[0]?.includes('status=exited'));
  assert.deepEqual(asked.slice(1), [
    ['container', 'start', 'aaa'],
    ['container', 'start', 'bbb'],
  ]);
});

test('one that does not start is told, and the others are started all the same', async () => {
  /** @type {string[]} */
  const said = [];
  const { asked, docker } = daemon(['aaa', 'bbb'], ['aaa']);
  await startStoppedEngines(docker, 'id-1', into(said));
  assert.equal(asked.length, 3);
  assert.match(said.join('\n'), /engine container aaa does not start: port is taken/);
});

test('where none is stopped, nothing is said', async () => {
  /** @type {string[]} */
  const said = [];
  const { asked, docker } = daemon([]);
  await startStoppedEngines(docker, 'id-1', into(said));
  assert.equal(asked.length, 1);
  assert.deepEqual(said, []);
});
