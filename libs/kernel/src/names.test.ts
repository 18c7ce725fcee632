import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ENVIRONMENT_NAME_MAX_BYTES } from './limits.ts';
import {
  attemptDatabaseName,
  environmentNameFault,
  environmentNames,
  profileRole,
  quoteIdentifier,
  quoteLiteral,
  sentinelUser,
  TIERS,
  tombstoneDatabaseName,
  utf8Bytes,
} from './names.ts';

/** PostgreSQL cuts an identifier after this many bytes, silently. */
const IDENTIFIER_MAX_BYTES = 63;

/** Any text, of any kind of characters, lone surrogates included. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }).map((units) => String.fromCharCode(...units)),
);
const allowedName = fc
  .oneof(
    anyText,
    fc.string({
      unit: fc.constantFrom('a', 'A', '-', ' ', '"', "'", '\\', '%', '$', ';', '.', 'ü', '日', '🐘'),
      maxLength: 45,
    }),
  )
  .filter((name) => environmentNameFault(name) === undefined);
const uuid = fc.uuid({ version: 4 });

function everyName(name: string, id: string): readonly string[] {
  const { database, door, owner, logins } = environmentNames(name, id);
  return [database, door, owner, ...Object.values(logins)];
}

describe('environment names', () => {
  test.each([
    'my-app-1',
    'ci-bot',
    'app-new',
    'AppDb',
    'MiXeD',
    'a',
    ' ',
    'a b',
    'x"y',
    "o'clock",
    'back\\slash',
    '%s',
    '$1',
    'ümlaut',
    '日本語',
    '🐘',
  ])('B001 B004: the name %j is allowed', (name) => {
    expect(environmentNameFault(name)).toBeUndefined();
  });

  test.each([
    'asc',
    'user',
    'select',
    'order',
    'table',
    'public',
    'all',
    'none',
    'postgres',
    'template1',
    'replication',
    'samerole',
  ])('B011: the word %s, which SQL or a rule file reads as its own, is allowed', (name) => {
    expect(environmentNameFault(name)).toBeUndefined();
  });

  test.each([
    ['', 'at least one character'],
    ['a/b', 'slash'],
    ['/', 'slash'],
    ['pg_', '"pg_"'],
    ['pg_stat', '"pg_"'],
    ['a\nb', 'control characters'],
    ['a\r', 'control characters'],
    ['\t', 'control characters'],
    ['a\0', 'control characters'],
    ['\u007f', 'control characters'],
    ['\u0085', 'control characters'],
    ['\u2028', 'line separators'],
    ['a\u2029b', 'line separators'],
    ['\ud83d', 'unpaired surrogates'],
    ['a\udc00b', 'unpaired surrogates'],
    ['x'.repeat(46), 'at most 45 bytes'],
    ['日'.repeat(16), 'at most 45 bytes in UTF-8; this one has 48'],
  ])('B001: the name %j is refused with a sentence that says the rule: %s', (name, rule) => {
    expect(environmentNameFault(name)).toContain(rule);
  });

  test('every control character, C0 and C1, is refused wherever it stands', () => {
    const controls = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)];
    for (const point of controls)
      for (const name of [
        String.fromCharCode(point),
        `a${String.fromCharCode(point)}`,
        `${String.fromCharCode(point)}a`,
      ])
        expect(environmentNameFault(name)).toMatch(/control characters/);
  });

  test('"pg_" is reserved at the beginning only, and only as PostgreSQL spells it', () => {
    for (const name of ['PG_x', 'Pg_', 'pgx', 'pg', 'a_pg_', ' pg_'])
      expect(environmentNameFault(name)).toBeUndefined();
  });

  test('B009: bytes are counted, not characters: 15 characters of three bytes fit, a 16th does not', () => {
    expect(environmentNameFault('語'.repeat(15))).toBeUndefined();
    expect(environmentNameFault('語'.repeat(16))).toBeDefined();
    expect(environmentNameFault('語'.repeat(40))).toBeDefined();
    expect(environmentNameFault('🐘'.repeat(11))).toBeUndefined();
    expect(environmentNameFault('🐘'.repeat(12))).toBeDefined();
  });

  test('B009: bytes are counted as UTF-8 has them', () => {
    fc.assert(
      fc.property(
        anyText.filter((text) => text.isWellFormed()),
        (text) => {
          expect(utf8Bytes(text)).toBe(Buffer.byteLength(text, 'utf8'));
        },
      ),
    );
  });

  test('B009: no name that is allowed makes a name that PostgreSQL would cut, and the longest allowed one uses every byte', () => {
    fc.assert(
      fc.property(allowedName, uuid, (name, id) => {
        for (const derived of everyName(name, id)) expect(utf8Bytes(derived)).toBeLessThanOrEqual(IDENTIFIER_MAX_BYTES);
      }),
    );
    const longest = everyName('x'.repeat(ENVIRONMENT_NAME_MAX_BYTES), '01234567-89ab-4cde-8f01-23456789abcd');
    expect(Math.max(...longest.map(utf8Bytes))).toBe(IDENTIFIER_MAX_BYTES);
  });

  test('B009: the suffix that tells environments apart is whole in every derived name', () => {
    fc.assert(
      fc.property(allowedName, uuid, (name, id) => {
        for (const derived of everyName(name, id)) expect(derived.startsWith(`${name}_${id.slice(0, 8)}`)).toBe(true);
      }),
    );
  });

  test('two environments never share a name, whatever they are called, as long as their ids begin differently', () => {
    fc.assert(
      fc.property(allowedName, allowedName, uuid, uuid, (one, other, oneId, otherId) => {
        fc.pre(oneId.slice(0, 8) !== otherId.slice(0, 8));
        const names = new Set(everyName(one, oneId));
        for (const name of everyName(other, otherId)) expect(names.has(name)).toBe(false);
      }),
    );
  });

  test('database and door role have one name, and owner and logins each another', () => {
    fc.assert(
      fc.property(allowedName, uuid, (name, id) => {
        const { database, door, owner, logins } = environmentNames(name, id);
        expect(door).toBe(database);
        expect(new Set([door, owner, ...TIERS.map((tier) => logins[tier])]).size).toBe(5);
      }),
    );
  });

  test('no allowed name can be used for a role that PostgreSQL reserves', () => {
    fc.assert(
      fc.property(allowedName, uuid, (name, id) => {
        for (const derived of everyName(name, id)) {
          expect(derived.startsWith('pg_')).toBe(false);
          expect(['public', 'none', 'postgres', 'current_user']).not.toContain(derived);
        }
      }),
    );
  });
});

describe('names that carry a token or a number', () => {
  test('attempt and tombstone hold the whole token, differ, and are not cut', () => {
    fc.assert(
      fc.property(uuid, (token) => {
        const digits = token.replaceAll('-', '');
        const names = [attemptDatabaseName(token), tombstoneDatabaseName(token)];
        expect(new Set(names).size).toBe(2);
        for (const name of names) {
          expect(name.endsWith(digits)).toBe(true);
          expect(utf8Bytes(name)).toBeLessThanOrEqual(IDENTIFIER_MAX_BYTES);
        }
      }),
    );
  });

  test('profile roles and sentinel users are told apart by their prefix', () => {
    expect(profileRole('local')).toBe('surefoot_profile_local');
    expect(sentinelUser(7)).toBe('surefoot_generation_7');
  });
});

/** What PostgreSQL's scanner reads out of a quoted identifier (scan.l, state xd). */
function readIdentifier(quoted: string): string | undefined {
  const found = /^"((?:[^"]|"")+)"$/u.exec(quoted);
  return found?.[1]?.replaceAll('""', '"');
}

/** What it reads out of a string constant, under either value of `standard_conforming_strings` (states xq and xe). */
function readLiteral(quoted: string, standardConforming: boolean): string | undefined {
  const escaped = /^ E'((?:[^'\\]|''|\\\\)*)'$/u.exec(quoted)?.[1];
  if (escaped !== undefined) return escaped.replaceAll("''", "'").replaceAll('\\\\', '\\');
  const plain = /^'((?:[^']|'')*)'$/u.exec(quoted)?.[1];
  // Without standard-conforming strings a backslash in a plain constant would begin an escape.
  if (plain === undefined || (!standardConforming && plain.includes('\\'))) return undefined;
  return plain.replaceAll("''", "'");
}

const quotable = anyText.filter((text) => !text.includes('\0'));

describe('quoting', () => {
  test('B007: a quoted identifier reads back as it was, whatever it holds', () => {
    fc.assert(
      fc.property(
        quotable.filter((text) => text !== ''),
        (text) => {
          expect(readIdentifier(quoteIdentifier(text))).toBe(text);
        },
      ),
    );
  });

  test('B007: a quoted string constant reads back as it was, whatever the server thinks of backslashes', () => {
    fc.assert(
      fc.property(quotable, fc.boolean(), (text, standardConforming) => {
        expect(readLiteral(quoteLiteral(text), standardConforming)).toBe(text);
      }),
    );
  });

  test('a constant with a backslash stays apart from a word before it', () => {
    expect(`is${quoteLiteral('a\\b')}`).toBe("is E'a\\\\b'");
  });

  test('what no identifier and no constant can be is refused, never shortened', () => {
    expect(() => quoteIdentifier('')).toThrow(TypeError);
    expect(() => quoteIdentifier('a\0b')).toThrow(TypeError);
    expect(() => quoteLiteral('a\0b')).toThrow(TypeError);
    expect(quoteLiteral('')).toBe("''");
  });

  test('every name that is made of an allowed one can be quoted', () => {
    fc.assert(
      fc.property(allowedName, uuid, (name, id) => {
        for (const derived of everyName(name, id)) expect(readIdentifier(quoteIdentifier(derived))).toBe(derived);
      }),
    );
  });
});
