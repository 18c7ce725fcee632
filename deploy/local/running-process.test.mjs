import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { endProcess, identify, isAlive, waitUntil } from './running-process.mjs';

/** @param {string} script */
async function startShell(script) {
  const child = spawn('sh', ['-c', `${script}; echo ready; read line`], { stdio: ['pipe', 'pipe', 'ignore'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const identity = child.pid === undefined ? undefined : await identify(child.pid);
  assert.ok(identity !== undefined);
  return identity;
}

test('the same number with another start time is another process', async () => {
  const self = await identify(process.pid);
  assert.ok(self !== undefined);
  assert.equal(await isAlive(self), true);
  assert.equal(await isAlive({ ...self, startedAt: `${self.startedAt}0` }), false);
});

test('a process that ends when asked is not killed', async () => {
  const identity = await startShell('trap "exit 0" TERM');
  assert.equal(await endProcess(identity, 5_000), 'ended');
});

test('a process that does not listen is killed after the time it is given', async () => {
  const identity = await startShell('trap "" TERM');
  assert.equal(await endProcess(identity, 200), 'killed');
  assert.equal(await isAlive(identity), false);
});

test('a zombie counts as dead', async () => {
  // A program that never waits for the child that a shell left it; the child ends only once the shell is no more, which
  // might have waited for it.
  const parent = spawn('sh', ['-c', 'cat <&3 >/dev/null & echo $!; exec sleep 20'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  const pid = Number(await new Promise((resolve) => parent.stdout?.once('data', (data) => resolve(String(data)))));
  const comm = () => readFile(`/proc/${parent.pid}/comm`, 'utf8');
  assert.ok(await waitUntil(async () => (await comm()) === 'sleep\n', 5_000, 5));
  assert.ok((await identify(pid)) !== undefined);
  parent.stdio[3]?.destroy();
  assert.ok(await waitUntil(async () => (await identify(pid)) === undefined, 5_000, 5));
  process.kill(pid, 0); // it is there nevertheless
  parent.kill('SIGKILL');
});
