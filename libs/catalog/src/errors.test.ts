import { expect, test } from '@jest/globals';
import { CatalogUnavailable, isServerAnswer, isUnavailable } from './errors.ts';

const withCode = (code: string) => Object.assign(new Error('x'), { code });

test.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', '57P01', '57P03', '08006', '53300', '40P01', '57014'])(
  '%s means that the catalog is not there for us now',
  (code) => {
    expect(isUnavailable(withCode(code))).toBe(true);
    expect(isUnavailable(new AggregateError([withCode(code), withCode(code)]))).toBe(true);
  },
);

test.each(['23505', '42601', '22P02'])('%s is an error of the statement', (code) => {
  expect(isUnavailable(withCode(code))).toBe(false);
  expect(isUnavailable(new AggregateError([withCode(code), withCode('ECONNREFUSED')]))).toBe(false);
});

test('what pg says in words only is understood too', () => {
  expect(isUnavailable(new Error('Connection terminated unexpectedly'))).toBe(true);
  expect(isUnavailable(new Error('Query read timeout'))).toBe(true);
  expect(isUnavailable(new CatalogUnavailable('x'))).toBe(true);
  expect(isUnavailable(new Error('out of cheese'))).toBe(false);
  expect(isUnavailable(undefined)).toBe(false);
});

test.each([
  ['23503', true],
  ['40001', true],
  ['EPIPE', false],
  ['ECONNRESET', false],
  ['57P01', false],
  ['08006', false],
])('after COMMIT, %s is an answer of the server: %s', (code, answers) => {
  expect(isServerAnswer(withCode(code))).toBe(answers);
});
