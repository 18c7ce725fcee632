import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lockKey } from './guarded-batch.ts';

test('the session lock’s number is the first half of the id, as a signed 64-bit number in decimal', () => {
  expect(lockKey('00000000-0000-0001-8000-000000000000')).toBe('1');
  expect(lockKey('ffffffff-ffff-ffff-8000-000000000000')).toBe('-1');
  expect(lockKey('7fffffff-ffff-ffff-8000-000000000000')).toBe('9223372036854775807');
  expect(lockKey('80000000-0000-0000-8000-000000000000')).toBe('-9223372036854775808');
  fc.assert(
    fc.property(fc.uuid({ version: 4 }), fc.uuid({ version: 4 }), (one, other) => {
      const key = BigInt(lockKey(one));
      expect(BigInt.asIntN(64, key)).toBe(key);
      expect(lockKey(one) === lockKey(other)).toBe(one.slice(0, 18) === other.slice(0, 18));
    }),
  );
});
