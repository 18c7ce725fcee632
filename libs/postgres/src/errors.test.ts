import { describe, expect, test } from '@jest/globals';
import { classifyEngineError, errorCode, errorSentence, isNotReadyYet } from './errors.ts';

const withCode = (code: string, message = 'message'): Error => Object.assign(new Error(message), { code });

describe('what an error from an engine means', () => {
  test.each([
    ['42501', 'answered', 'a right that is missing'],
    ['42710', 'answered', 'a role that exists'],
    ['42P04', 'answered', 'a database that exists'],
    ['23505', 'answered', 'a lost race'],
    ['55006', 'answered', 'a database in use'],
    ['2BP01', 'answered', 'objects that depend on it'],
    ['57014', 'answered', 'a statement that was cancelled'],
    ['40P01', 'answered', 'a deadlock'],
    ['53100', 'answered', 'a full disk'],
    ['53300', 'answered', 'no free connection'],
    ['28P01', 'answered', 'a wrong password'],
    ['XX000', 'answered', 'an internal error'],
    ['P0001', 'answered', 'a raised exception'],
    ['57P01', 'lost', 'a backend that an administrator ended'],
    ['57P02', 'lost', 'a crash of another backend'],
    ['57P03', 'lost', 'a server that cannot serve now'],
    ['57P05', 'lost', 'a session that was idle too long'],
    ['25P03', 'lost', 'a transaction that was idle too long'],
    ['08006', 'lost', 'a connection that failed'],
    ['08P01', 'lost', 'a broken protocol'],
    ['ECONNRESET', 'lost', 'a connection that was reset'],
    ['ETIMEDOUT', 'lost', 'a connection that timed out'],
    ['EPIPE', 'lost', 'a write into a closed connection, whose code has five letters like an SQLSTATE'],
    ['EBADF', 'lost', 'a socket that is gone, whose code has five letters too'],
    ['ECONNREFUSED', 'unreachable', 'nobody who listens'],
    ['ENOENT', 'unreachable', 'a socket file that is not there'],
    ['EACCES', 'unreachable', 'a socket file that may not be opened'],
  ])('%s is %s: %s', (code, expected) => {
    expect(classifyEngineError(withCode(code))).toBe(expected);
  });

  test('an error without a code says nothing about what became of the statement', () => {
    for (const error of [
      new Error('Query read timeout'),
      new Error('Connection terminated unexpectedly'),
      'text',
      null,
      undefined,
      { code: 7 },
    ])
      expect(classifyEngineError(error)).toBe('lost');
  });

  test('of several tries to connect at once the first one’s code counts', () => {
    expect(errorCode(new AggregateError([withCode('ECONNREFUSED'), withCode('EACCES')]))).toBe('ECONNREFUSED');
    expect(classifyEngineError(new AggregateError([withCode('ECONNREFUSED')]))).toBe('unreachable');
  });

  test.each(['57P03', '57P01', '53300', 'ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE'])(
    '%s may be gone in a moment',
    (code) => {
      expect(isNotReadyYet(withCode(code))).toBe(true);
    },
  );

  test.each(['28P01', '28000', '42501', '3D000', 'DEPTH_ZERO_SELF_SIGNED_CERT'])(
    '%s will be the same in a moment',
    (code) => {
      expect(isNotReadyYet(withCode(code))).toBe(false);
    },
  );

  test('B109: a sentence for people has the server’s message and code, and none of what a statement held', () => {
    const secret = 'SCRAM-SHA-256$4096:abc';
    const error = Object.assign(withCode('42710', 'role "x" already exists'), {
      detail: secret,
      where: secret,
      query: secret,
      internalQuery: secret,
      hint: secret,
    });
    expect(errorSentence(error)).toBe('role "x" already exists (42710)');
    expect(errorSentence(new Error('no code'))).toBe('no code');
  });
});
