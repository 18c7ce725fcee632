import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastWords, tryCommand } from './command.mjs';

test('a program gets its input, and its output and code come back', async () => {
  const result = await tryCommand('sh', ['-c', 'cat; echo bad >&2; exit 3'], { input: 'good' });
  assert.deepEqual([result.code, result.stdout, result.stderr], [3, 'good', 'bad\n']);
  assert.equal(lastWords(result), 'bad');
});

test('a program that is not there is an answer', async () => {
  assert.equal((await tryCommand('surefoot-no-such-program', [])).missing, true);
});

test('a deadline ends the program and what it started', async () => {
  const startedAt = performance.now();
  const result = await tryCommand('sh', ['-c', 'sleep 30 & sleep 30'], { deadlineMs: 100 });
  assert.deepEqual([result.timedOut, result.code], [true, null]);
  assert.ok(performance.now() - startedAt < 10_000);
});

test('a program is ended when its caller gives up', async () => {
  const result = await tryCommand('sleep', ['30'], { signal: AbortSignal.timeout(100) });
  assert.equal(result.code, null);
});

test('each line is told as it comes', async () => {
  /** @type {string[]} */
  const lines = [];
  await tryCommand('sh', ['-c', 'echo one; echo two >&2'], { onLine: (line) => lines.push(line) });
  assert.deepEqual(lines.sort(), ['one', 'two']);
});
