import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lastWarning, readLog, tellingLine } from './process-log.mjs';

/** @param {object[]} entries */
const log = (...entries) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');

const waiting = { level: 'warn', process: 'worker', message: 'recovering: waiting', detail: 'engine main: refused' };
const found = { level: 'info', process: 'worker', message: 'receipt found', outcome: 'keep' };

test('the end of a log is told as a sentence: message, detail, error and its causes', () => {
  const error = { message: 'no catalog', stack: 'Error: no catalog\n  at x', cause: { message: 'ECONNREFUSED' } };
  const text = log(found, { level: 'error', message: 'worker ends with an error', error });
  assert.equal(tellingLine(text), 'worker ends with an error: no catalog: ECONNREFUSED');
  assert.equal(tellingLine(log(waiting)), 'recovering: waiting: engine main: refused');
  assert.equal(tellingLine(log({ level: 'info', message: 'worker is asked to stop' })), 'worker is asked to stop');
});

test('a warning says more than what is logged after it', () => {
  assert.equal(tellingLine(log(waiting, found, found)), 'recovering: waiting: engine main: refused');
  assert.equal(lastWarning(log(waiting, found)), 'recovering: waiting: engine main: refused');
  assert.equal(lastWarning(log(found)), undefined);
});

test('of a crash of Node the error is told, not the last line', () => {
  const text = [
    JSON.stringify(waiting),
    'node:internal/modules/esm/resolve:275',
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
    '    at finalizeResolution (node:internal/modules/esm/resolve:275:11)',
    '',
    'Node.js v24.0.0',
  ].join('\n');
  assert.equal(tellingLine(text), "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'");
});

test('plain text, half a line and silence are told too', () => {
  assert.equal(tellingLine('the catalog is newer than this program\n'), 'the catalog is newer than this program');
  assert.equal(tellingLine('{"level":"warn","mess'), '{"level":"warn","mess');
  assert.equal(tellingLine('{"odd":1}'), '{"odd":1}');
  assert.equal(tellingLine(''), 'it said nothing');
});

test('a log is read from where this run begins, and whole where it was cut since', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surefoot-log-'));
  const path = join(folder, 'worker.log');
  try {
    assert.equal(await readLog(path), '');
    await appendFile(path, log(waiting));
    const from = (await stat(path)).size;
    assert.equal(await readLog(path, from), '');
    await appendFile(path, log(found));
    assert.equal(await readLog(path, from), log(found));
    await truncate(path);
    await appendFile(path, log(found));
    assert.equal(await readLog(path, from + 1_000), log(found));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('of a long log the last whole lines are read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surefoot-log-'));
  const path = join(folder, 'worker.log');
  try {
    await appendFile(path, log(found).repeat(20_000));
    const text = await readLog(path);
    assert.ok(text.length < 1024 * 1024 + 1 && text.length > 1_000_000);
    assert.ok(
      text
        .split('\n')
        .slice(0, -1)
        .every((line) => JSON.parse(line).message === 'receipt found'),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
