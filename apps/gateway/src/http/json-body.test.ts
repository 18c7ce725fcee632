import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Problem } from '#kernel';
import { parseJsonBody } from './json-body.ts';

test('JSON comes out as it went in', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!text.includes('__proto__') && !text.includes('constructor'));
      expect(parseJsonBody(Buffer.from(text))).toEqual(JSON.parse(text));
    }),
  );
});

test('a body of no bytes is no body', () => {
  expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined();
});

test.each([
  ['an open brace', Buffer.from('{')],
  ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['a UTF-8 sequence that is cut', Buffer.from([0x22, 0xe6, 0x97, 0x22])],
  ['a field named __proto__', Buffer.from('{"labels":{"__proto__":{"a":1}}}')],
  ['a field named constructor', Buffer.from('{"labels":{"constructor":"a"}}')],
  ['__proto__ behind an escape', Buffer.from('{"\\u005f_proto__":1}')],
])('%s is refused as invalid_json', (_what, bytes) => {
  expect(() => parseJsonBody(bytes)).toThrow(Problem);
});

test('the refusal does not quote the body', () => {
  try {
    parseJsonBody(Buffer.from('{"password": hunter2'));
  } catch (error) {
    expect(JSON.stringify(error) + String(error)).not.toContain('hunter2');
  }
  expect.assertions(1);
});
