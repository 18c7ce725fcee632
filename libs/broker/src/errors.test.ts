import { expect, test } from '@jest/globals';
import { brokerError, BrokerRefused, BrokerUnavailable } from './errors.ts';

test.each([
  ['a refused connection', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
  ['a broker that is stopped', Object.assign(new Error('Connection closed: 320 (CONNECTION-FORCED)'), { code: 320 })],
  ['a queue without a leader', Object.assign(new Error('Operation failed: 541'), { code: 541, classId: 50 })],
  ['a missing queue', Object.assign(new Error('Operation failed: 404 (NOT-FOUND)'), { code: 404, classId: 50 })],
  [
    'a late acknowledgement',
    Object.assign(new Error('Channel closed by server: 406 (PRECONDITION-FAILED)'), { code: 406, classId: 60 }),
  ],
  ['an end without a word', new Error('Socket closed abruptly during opening handshake')],
])('%s may be tried again', (_what, error) => {
  const known = brokerError('trying', error);
  expect(known).toBeInstanceOf(BrokerUnavailable);
  expect(known.cause).toBe(error);
});

test.each([
  ['other settings', Object.assign(new Error("406 (PRECONDITION_FAILED) 'x-queue-type'"), { code: 406, classId: 50 })],
  ['another type of exchange', Object.assign(new Error('406 (PRECONDITION_FAILED)'), { code: 406, classId: 40 })],
  ['a wrong password', new Error('Handshake terminated by server: 403 (ACCESS-REFUSED) with message "…"')],
  ['a missing virtual host', new Error('Expected ConnectionOpenOk; got <ConnectionClose channel:0 {"replyCode":530}>')],
])('%s is for somebody to act on', (_what, error) => {
  expect(brokerError('trying', error)).toBeInstanceOf(BrokerRefused);
});

test('what is known already is not wrapped again', () => {
  const known = new BrokerUnavailable('away');
  expect(brokerError('trying', known)).toBe(known);
});
