import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tellingLine } from './app-processes.mjs';

test('the end of a log is told by its message and its error', () => {
  const line = JSON.stringify({ level: 50, msg: 'worker ends with an error', error: { message: 'no catalog' } });
  assert.equal(tellingLine(`{"msg":"earlier"}\n${line}\n`), 'worker ends with an error: no catalog');
});

test('of a crash of Node the error is told, not the last line', () => {
  const text = [
    '{"msg":"gateway starts"}',
    'node:internal/modules/esm/resolve:275',
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
    '    at finalizeResolution (node:internal/modules/esm/resolve:275:11)',
    '',
    'Node.js v24.0.0',
  ].join('\n');
  assert.equal(tellingLine(text), "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'");
});

test('silence is told too', () => {
  assert.equal(tellingLine(''), 'it said nothing');
});
