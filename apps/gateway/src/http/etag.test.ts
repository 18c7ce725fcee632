import { expect, test } from '@jest/globals';
import { etagOf, expectedVersion, matchesEtag } from './etag.ts';

test('what was given out is recognised, alone, in a list, and as a weak one', () => {
  for (const header of [etagOf('7'), `"1", ${etagOf('7')}`, `W/${etagOf('7')}`, '*'])
    expect(matchesEtag(header, '7')).toBe(true);
  for (const header of [undefined, '', '7', etagOf('77')]) expect(matchesEtag(header, '7')).toBe(false);
});

test('a change is meant for the version that is there, for a gone one, or for any', () => {
  expect(expectedVersion(undefined, '7')).toEqual({});
  expect(expectedVersion('*', '7')).toEqual({});
  expect(expectedVersion('"6", "7"', '7')).toEqual({ ifVersion: '7' });
  expect(expectedVersion('"6"', '7')).toEqual({ ifVersion: '6' });
});

test('a weak tag never matches strongly', () => {
  expect(expectedVersion('W/"7"', '7')).not.toEqual({ ifVersion: '7' });
});
