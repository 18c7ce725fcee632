import { expect, test } from '@jest/globals';
import { etagOf, expectedVersion, matchesEtag } from './etag.ts';

test('what was given out is recognised, alone, in a list, and as a weak one', () => {
  for (const header of [etagOf('7'), `"1", ${etagOf('7')}`, `W/${etagOf('7')}`, '*'])
    expect(matchesEtag(header, '7')).toBe(true);
  for (const header of [undefined, '', '7', etagOf('77')]) expect(matchesEtag(header, '7')).toBe(false);
});

const CURRENT = { shown: '7.4', row: '7' };

test('a change is meant for the version that is there, for a gone one, or for any', () => {
  expect(expectedVersion(undefined, CURRENT)).toEqual({});
  expect(expectedVersion('*', CURRENT)).toEqual({});
  expect(expectedVersion('"6", "7.4"', CURRENT)).toEqual({ ifVersion: '7' });
  expect(expectedVersion('"6"', CURRENT)).toEqual({ ifVersion: '6' });
  expect(expectedVersion('"7.3"', CURRENT)).toEqual({ ifVersion: '7.3' });
});

test('a weak tag never matches strongly', () => {
  expect(expectedVersion('W/"7.4"', CURRENT)).not.toEqual({ ifVersion: '7' });
});
