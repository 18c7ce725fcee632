import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Pin } from './pin.ts';
import { pinDifferences } from './pin.ts';

const PINNED: Pin = {
  containerId: 'c'.repeat(64),
  imageDigest: `sha256:${'a'.repeat(64)}`,
  volumeName: 'surefoot-volume-1',
  volumeMark: '11111111-1111-4111-8111-111111111111',
  systemIdentifier: '7512345678901234567',
  timeline: 1,
  configurationDigest: 'd'.repeat(64),
};
const OTHER: Pin = {
  containerId: 'absent',
  imageDigest: `sha256:${'b'.repeat(64)}`,
  volumeName: 'surefoot-volume-2',
  volumeMark: '22222222-2222-4222-8222-222222222222',
  systemIdentifier: '7512345678901234568',
  timeline: 2,
  configurationDigest: 'e'.repeat(64),
};
const FIELDS = Object.keys(PINNED) as (keyof Pin)[];

describe('pins', () => {
  test('an engine that is as it was pinned differs in nothing', () => {
    expect(pinDifferences(PINNED, { ...PINNED })).toEqual([]);
  });

  test.each(FIELDS)(
    'another %s is one difference, which names the field, what was found and what was pinned (invariant 11)',
    (field) => {
      expect(pinDifferences(PINNED, { ...PINNED, [field]: OTHER[field] })).toEqual([
        `${field} is ${OTHER[field]}, pinned is ${PINNED[field]}`,
      ]);
    },
  );

  test('every set of fields that differ is named, one sentence each', () => {
    fc.assert(
      fc.property(fc.subarray(FIELDS), (changed) => {
        const found = { ...PINNED, ...Object.fromEntries(changed.map((field) => [field, OTHER[field]])) };
        expect(pinDifferences(PINNED, found).map((sentence) => sentence.split(' ')[0])).toEqual(changed);
      }),
    );
  });
});
