import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { HbaLine, Word } from './lines.ts';
import { HbaSyntax, parseLines, renderLine } from './lines.ts';

const printable = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  // eslint-disable-next-line no-control-regex -- control characters are the renderer's refusal, tested on their own
  .filter((text) => !/[\u0000-\u001f\u007f]/.test(text));
const nasty = fc.constantFrom(
  'all',
  'samerole',
  'replication',
  '+x',
  '@x',
  '/x',
  '"',
  '""',
  'a"b',
  'a b',
  'a,b',
  '#',
  '\\',
  'x\\',
  'ALL',
  'ü',
  '日本',
);
const name: fc.Arbitrary<Word> = fc.oneof(printable, nasty).map((text) => ({ is: 'name', text }));
const group: fc.Arbitrary<Word> = fc.oneof(printable, nasty).map((text) => ({ is: 'group', text }));
const keyword = (...texts: string[]): fc.Arbitrary<Word> =>
  fc.constantFrom(...texts).map((text) => ({ is: 'keyword', text }));

const line: fc.Arbitrary<HbaLine> = fc
  .record({
    type: fc.constantFrom('local' as const, 'host' as const, 'hostssl' as const, 'hostnossl' as const),
    databases: fc.array(fc.oneof(name, group, keyword('all', 'samerole', 'sameuser', 'replication')), {
      minLength: 1,
      maxLength: 4,
    }),
    users: fc.array(fc.oneof(name, group, keyword('all')), { minLength: 1, maxLength: 4 }),
    address: fc.constantFrom('all', '10.0.0.0/8', '::1/128', 'samenet'),
    method: fc.constantFrom('scram-sha-256', 'reject', 'trust'),
    options: fc.array(fc.constantFrom('clientcert=verify-full', 'map=x'), { maxLength: 2 }),
  })
  .map(({ address, ...rest }) => (rest.type === 'local' ? rest : { ...rest, address }));

describe('rendering and parsing of rule lines', () => {
  test('what is rendered is read back as it was, whatever the names hold', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
        expect(parseLines(lines.map(renderLine).join('\n'))).toEqual(lines);
      }),
    );
  });

  test('B037: no name brings a rule of its own: a line is one line', () => {
    fc.assert(
      fc.property(line, (one) => {
        expect(renderLine(one)).not.toMatch(/[\r\n\0]/);
      }),
    );
  });

  test('a name with a control character is refused, not written', () => {
    for (const text of ['a\nhost all all all trust', 'a\r', 'a\0', '\t'])
      expect(() =>
        renderLine({
          type: 'local',
          databases: [{ is: 'name', text }],
          users: [{ is: 'keyword', text: 'all' }],
          method: 'reject',
          options: [],
        }),
      ).toThrow(TypeError);
  });

  test('B039: a database that is called replication is not the keyword, and the keyword is not a database', () => {
    const named: HbaLine = {
      type: 'local',
      databases: [{ is: 'name', text: 'replication' }],
      users: [{ is: 'name', text: 'all' }],
      method: 'reject',
      options: [],
    };
    expect(renderLine(named)).toBe('local "replication" "all" reject');
    expect(parseLines('local replication all reject')[0]?.databases).toEqual([{ is: 'keyword', text: 'replication' }]);
  });

  test('B041: what is missing is refused, and never written as a word', () => {
    expect(() => parseLines('local all all trust null')).toThrow(
      'line 1: "null" is not an option of the form name=value',
    );
  });

  test.each([
    ['nothing all all trust', '"nothing" is not a connection type'],
    ['host all all', 'address is missing'],
    ['host all all 10.0.0.0/8', 'method is missing'],
    ['host all "all 10.0.0.0/8 trust', 'a quote is not closed'],
    ['host all, , x 10.0.0.0/8 trust', 'a word is missing at a comma'],
    ['host all all 10.0.0.0 255.0.0.0 trust', '"255.0.0.0" is not a method'],
    ['host @names all all trust', '"@names" refers to a file or a pattern, which no file of ours does'],
    ['host /^x all all trust', '"/^x" refers to a file or a pattern, which no file of ours does'],
    ['include other.conf', '"include" is not a connection type'],
    ['host all + all trust', 'a group name is empty'],
    ['local all "" trust', 'a name is empty'],
    ['local all all trust \\', 'a backslash joins a line that is not there'],
  ])('B042: an invalid line is refused with its number: %s', (text, message) => {
    expect(() => parseLines(`# first\n${text}`)).toThrow(new HbaSyntax(2, message));
  });

  test('comments, empty lines, joined lines and a comment behind a rule are read as PostgreSQL reads them', () => {
    const text = [
      '# comment \\',
      'still comment',
      '',
      '  \t',
      'local all,"b c" \\',
      '  all trust # tail',
      'host x#y',
    ].join('\n');
    expect(() => parseLines(text)).toThrow('line 7: user is missing');
    expect(parseLines(text.slice(0, text.lastIndexOf('\n')))).toEqual([
      {
        type: 'local',
        databases: [
          { is: 'keyword', text: 'all' },
          { is: 'name', text: 'b c' },
        ],
        users: [{ is: 'keyword', text: 'all' }],
        method: 'trust',
        options: [],
      },
    ]);
  });
});
