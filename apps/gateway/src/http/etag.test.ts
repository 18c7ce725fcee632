import { expect, test } from '@jest/globals';
import { etagOf, expectedVersion, matchesEtag } from './etag.ts';

test('what was given out is recognised, alone, in a list, and as a weak one', () => {
  for (const header of [etagOf('7'), `"1", ${etagOf('7')}`, `W/${etagOf('7')}`, '*'])
    expect(matchesEtag(header, '7')).toBe(true);
  for (const header of [undefined, '', '7', etagOf('77')]) expect(matchesEtag(header, '7')).toBe(false);
});

test('a change is meant for the row that is there, for a gone one, or for any', () => {
  expect(expectedVersion(undefined, '7')).toEqual({});
  expect(expectedVersion('*', '7')).toEqual({});
  expect(expectedVersion('"6", "7.aZ-_"', '7')).toEqual({ ifVersion: '7' });
  expect(expectedVersion('"6.aZ"', '7')).toEqual({ ifVersion: '6' });
});

test('what was seen of services does not matter to a change', () => {
  for (const tag of ['"7"', '"7.a"', '"7.b"']) expect(expectedVersion(tag, '7')).toEqual({ ifVersion: '7' });
});

test('a weak tag, or what was never given out, matches nothing', () => {
  for (const tag of ['W/"7.4"', '"7', '"7.4.5"', '"77"', '"v7"', ''])
    expect(expectedVersion(tag, '7').ifVersion).not.toBe('7');
});
