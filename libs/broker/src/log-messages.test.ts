import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { LOG_TAIL_MAX } from '#kernel';
import { logMessage, parseLogAnswer, parseLogRequest, type LogAnswer } from './log-messages.ts';

const REQUEST = {
  id: '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11',
  containerId: '0123456789abcdef'.repeat(4),
  tail: 100,
  follow: true,
};

function bytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

test.each([
  [{}],
  [{ since: '2026-01-01T00:00:00.123456789Z' }],
  [{ since: '2026-01-01T00:00:00+02:00', tail: 0 }],
  [{ tail: LOG_TAIL_MAX, follow: false }],
])('a request with %j is read as it was written', (more) => {
  const request = { ...REQUEST, ...more };
  expect(parseLogRequest(bytes(logMessage(request)))).toEqual(request);
});

test.each([
  [{ version: 2 }, 'another version'],
  [{ id: 'surefoot.jobs.local' }, 'id is not a UUID'],
  [{ containerId: '0123456789ab' }, 'containerId is not one'],
  [{ containerId: `${'0'.repeat(60)}/../` }, 'containerId is not one'],
  [{ tail: LOG_TAIL_MAX + 1 }, 'tail is not a number from 0 to 10000'],
  [{ tail: -1 }, 'tail is not a number from 0 to 10000'],
  [{ tail: '5' }, 'tail is not a number from 0 to 10000'],
  [{ since: 'yesterday' }, 'since is not a time'],
  [{ since: '2026-01-01' }, 'since is not a time'],
  [{ since: '2026-13-01T00:00:00Z' }, 'since is not a time'],
  [{ since: '2026-01-01T00:00:00.1234567891Z' }, 'since is not a time'],
  [{ follow: 'yes' }, 'follow is not a boolean'],
  [{ replyTo: 'elsewhere' }, 'members that do not belong there'],
])('a request with %j is none', (more, fault) => {
  expect(parseLogRequest(bytes({ ...logMessage(REQUEST), ...more }))).toEqual({ fault });
});

test('a request that is too long is not read', () => {
  const answer = parseLogRequest(bytes({ ...logMessage(REQUEST), more: 'x'.repeat(1_000) }));
  expect(answer).toEqual({ fault: expect.stringMatching(/^\d{4} bytes are too many$/) });
});

test('whatever bytes come, the answer is a request or a reason, and the reason does not repeat them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (content) => {
      const answer = parseLogRequest(Buffer.from(content));
      expect('fault' in answer && answer.fault.length < 60).toBe(true);
    }),
  );
});

const ANSWERS: readonly LogAnswer[] = [
  { seq: 0, lines: [] },
  { seq: 7, lines: [{ at: '2026-01-01T00:00:00.000000000Z', stream: 'stderr', text: '\u0000é\u001b', cut: true }] },
  { seq: 8, end: 'stopped', truncated: false },
  { seq: 8, end: 'complete', truncated: true },
  { seq: 0, refusal: { code: 'rate_limited', message: 'too many' } },
];

test.each(ANSWERS)('the answer %j is read as it was written', (answer) => {
  expect(parseLogAnswer(bytes(logMessage(answer)))).toEqual(answer);
});

test.each([
  [{ version: 2, seq: 0, lines: [] }],
  [{ version: 1, lines: [] }],
  [{ version: 1, seq: 0 }],
  [{ version: 1, seq: 0, end: 'toString' }],
  [{ version: 1, seq: 0, refusal: { code: 'unheard-of', message: 'x' } }],
  [[1]],
  ['text'],
])('the answer %j is of another version', (answer) => {
  expect(parseLogAnswer(bytes(answer))).toBeUndefined();
});
