import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isUuid } from './ids.ts';

test('every random id is one', () => {
  fc.assert(
    fc.property(fc.uuid({ version: 4 }), (id) => {
      expect(isUuid(id)).toBe(true);
    }),
  );
});

test('an id in capitals, in braces, with a line after it or with a digit changed to another character is not one', () => {
  fc.assert(
    fc.property(fc.uuid({ version: 4 }), fc.nat(35), fc.constantFrom('g', '-', ' ', 'é'), (id, at, other) => {
      fc.pre(id[at] !== other);
      expect(isUuid(id.slice(0, at) + other + id.slice(at + 1))).toBe(false);
      for (const wrong of [`{${id}}`, `${id}\n`, ` ${id}`, id.replaceAll('-', ''), id + id])
        expect(isUuid(wrong)).toBe(false);
      fc.pre(/[a-f]/.test(id));
      expect(isUuid(id.toUpperCase())).toBe(false);
    }),
  );
});
