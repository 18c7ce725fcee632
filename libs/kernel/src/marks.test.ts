import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Mark } from './marks.ts';
import { markLabels, markText, parseMark } from './marks.ts';

const uuid = fc.uuid({ version: 4 });
const mark: fc.Arbitrary<Mark> = fc.record({
  installation: uuid,
  kind: fc.constantFrom('environment', 'engine', 'service', 'placeholder', 'network', 'volume'),
  id: uuid,
  token: uuid,
});

describe('marks', () => {
  test('a mark reads back from its text as it was', () => {
    fc.assert(
      fc.property(mark, (one) => {
        expect(parseMark(markText(one))).toEqual(one);
      }),
    );
  });

  test('no other text is a mark: neither one with something before or after it, nor one with a part missing', () => {
    fc.assert(
      fc.property(mark, fc.string({ minLength: 1 }), fc.nat(), (one, more, at) => {
        const text = markText(one);
        expect(parseMark(text + more)).toBeUndefined();
        expect(parseMark(more + text)).toBeUndefined();
        const cut = at % text.length;
        expect(parseMark(text.slice(0, cut) + text.slice(cut + 1))).toBeUndefined();
      }),
    );
    for (const none of [null, '', 'surefoot', 'a comment of somebody else']) expect(parseMark(none)).toBeUndefined();
  });

  test('labels carry the same four facts', () => {
    fc.assert(
      fc.property(mark, (one) => {
        expect(markLabels(one)).toEqual({
          'surefoot.installation': one.installation,
          'surefoot.kind': one.kind,
          'surefoot.id': one.id,
          'surefoot.token': one.token,
        });
      }),
    );
  });
});
