import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseJobMessage } from './job-message.ts';

const JOB = '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11';

function parse(value: unknown): unknown {
  return parseJobMessage(Buffer.from(JSON.stringify(value)));
}

test('a job message is a version and an id', () => {
  expect(parse({ version: 1, jobId: JOB })).toEqual({ jobId: JOB });
});

test.each([
  [{ version: 2, jobId: JOB }, 'another version'],
  [{ jobId: JOB }, 'another version'],
  [{ version: 1, jobId: JOB.toUpperCase() }, 'jobId is not a UUID'],
  [{ version: 1 }, 'jobId is not a UUID'],
  [{ version: 1, jobId: JOB, sql: 'drop' }, 'members that do not belong there'],
  [[1, JOB], 'not a JSON object'],
  [null, 'not a JSON object'],
  [{ version: 1, jobId: JOB, more: 'x'.repeat(1_000) }, '1070 bytes are too many'],
])('%j is refused', (value, fault) => {
  expect(parse(value)).toEqual({ fault });
});

test('whatever bytes come, the answer is a job or a reason, and the reason does not repeat them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
      const answer = parseJobMessage(Buffer.from(bytes));
      expect('fault' in answer && answer.fault.length < 60).toBe(true);
    }),
  );
});
