import { describe, expect, test } from '@jest/globals';
import { compareAge } from './age.ts';

const OURS = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';

/** Every order in which catalog, place and the settled claim can stand, ties included. */
const NUMBERS = [0, 1, 2, 3];
const ORDERS = NUMBERS.flatMap((catalog) =>
  NUMBERS.flatMap((settled) => NUMBERS.map((found) => ({ catalog, settled, found }))),
);

describe('age of a place against the catalog', () => {
  test('in all orders: ahead of the catalog, or behind a claim that was settled there, is refused; everything between is not', () => {
    for (const { catalog, settled, found } of ORDERS) {
      const reason = compareAge('host local', { identity: OURS, claimNumber: catalog }, settled, {
        identity: OURS,
        claimNumber: found,
      });
      const expected =
        found > catalog ? 'the catalog went back in time' : found < settled ? 'it went back in time' : undefined;
      const order = `catalog ${catalog}, settled ${settled}, found ${found}: ${reason?.message ?? 'accepted'}`;
      if (expected === undefined) expect(order).toMatch(/accepted$/);
      else {
        expect(order).toContain(expected);
        expect(reason?.code).toBe('age');
      }
    }
  });

  test('the message names the place, both numbers, and which of the two went back', () => {
    const catalog = { identity: OURS, claimNumber: 5 };
    expect(compareAge('engine main', catalog, 4, { identity: OURS, claimNumber: 7 })?.message).toBe(
      'engine main has seen claim 7, the catalog only 5: the catalog went back in time',
    );
    expect(compareAge('engine main', catalog, 4, { identity: OURS, claimNumber: 3 })?.message).toBe(
      'engine main has seen claim 3, but the catalog settled claim 4 there: it went back in time',
    );
  });

  test('another identity is refused whatever the numbers say, and both identities are named', () => {
    for (const { catalog, settled, found } of ORDERS) {
      const reason = compareAge('host local', { identity: OURS, claimNumber: catalog }, settled, {
        identity: OTHER,
        claimNumber: found,
      });
      expect(reason?.code).toBe('age');
      expect(reason?.message).toContain(OURS);
      expect(reason?.message).toContain(OTHER);
    }
  });

  test('a place without a record is new as long as nothing was settled there, and lost its state afterwards (invariant 7)', () => {
    for (const claimNumber of NUMBERS) {
      expect(compareAge('host local', { identity: OURS, claimNumber }, 0, undefined)).toBeUndefined();
      expect(compareAge('host local', { identity: OURS, claimNumber }, 1, undefined)).toMatchObject({
        code: 'age',
        message: expect.stringContaining('its state was lost'),
      });
    }
  });
});
