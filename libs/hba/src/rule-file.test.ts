import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cidrFault } from './cidr.ts';
import { parseLines } from './lines.ts';
import type { RuleSet } from './rule-file.ts';
import { diffLines, parseRuleFile, renderRuleFile, ruleFileFaults, ruleLines } from './rule-file.ts';

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
const engineId = '7d4f2d0e-9d43-4b0b-8a55-4f1f6f0d6f11';

const cidr = fc.oneof(
  fc.tuple(fc.ipV4(), fc.constant(32)).map(([address, length]) => `${address}/${length}`),
  fc.constantFrom('10.0.0.0/8', '0.0.0.0/0', '::/0', 'fd00::/8', '2001:db8::1/128'),
);
const profiles = fc.uniqueArray(
  fc.record({
    name: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 20 }),
    cidrs: fc.array(cidr, { maxLength: 4 }),
  }),
  { selector: ({ name }) => name, maxLength: 5 },
);
const ruleSet: fc.Arbitrary<RuleSet> = fc.record({ engineId: fc.constant(engineId), generation: fc.nat(), profiles });

describe('the rule file', () => {
  test('is the file for its rules and for no others, whatever the profiles are called', () => {
    fc.assert(
      fc.property(ruleSet, (rules) => {
        const text = renderRuleFile(rules, digest);
        expect(ruleFileFaults(text, rules, digest)).toEqual([]);
        expect(ruleFileFaults(text, { ...rules, generation: rules.generation + 1 }, digest)).not.toEqual([]);
        expect(
          ruleFileFaults(
            text,
            { ...rules, profiles: [...rules.profiles, { name: 'ü', cidrs: ['10.9.0.0/16'] }] },
            digest,
          ),
        ).not.toEqual([]);
      }),
    );
  });

  test('B037: begins with the sentinel, then the administrator, and only membership rules over TLS follow', () => {
    fc.assert(
      fc.property(ruleSet, (rules) => {
        const [sentinel, administrator, ...rest] = ruleLines(rules);
        expect(sentinel).toMatchObject({
          type: 'hostssl',
          users: [{ is: 'name', text: `surefoot_generation_${rules.generation}` }],
        });
        expect(administrator).toMatchObject({ type: 'local', users: [{ is: 'name', text: 'postgres' }] });
        for (const line of rest) {
          expect(line).toMatchObject({
            type: 'hostssl',
            method: 'scram-sha-256',
            databases: [{ is: 'keyword', text: 'samerole' }],
          });
          expect(line.users).toEqual([{ is: 'group', text: expect.stringMatching(/^surefoot_profile_/) as unknown }]);
        }
      }),
    );
  });

  test('B039: no rule is about replication, and `all` does not include it', () => {
    const text = renderRuleFile(
      { engineId, generation: 3, profiles: [{ name: 'local', cidrs: ['10.0.0.1/32'] }] },
      digest,
    );
    expect(text).not.toContain('replication');
  });

  test('B041: without profiles it is the two rules of the engine itself, and nothing of the old ones stays', () => {
    const text = renderRuleFile({ engineId, generation: 4, profiles: [{ name: 'local', cidrs: [] }] }, digest);
    expect(parseLines(text)).toHaveLength(2);
    expect(text).not.toMatch(/null|undefined/);
  });

  test('B042: an edit, a cut, an added line, another engine and an invalid line are all seen', () => {
    const rules: RuleSet = { engineId, generation: 1, profiles: [{ name: 'local', cidrs: ['10.0.0.1/32'] }] };
    const text = renderRuleFile(rules, digest);
    for (const edited of [
      `${text}host all all all trust\n`,
      text.slice(0, -5),
      text.replace('10.0.0.1', '10.0.0.2'),
      `\n${text}`,
      '',
    ])
      expect(parseRuleFile(edited, digest).is).toBe('foreign');
    const other = renderRuleFile({ ...rules, engineId: '00000000-0000-4000-8000-000000000000' }, digest);
    expect(ruleFileFaults(other, rules, digest)).toEqual(['it is for engine 00000000-0000-4000-8000-000000000000']);
    const forged = sealed(text.split('\n').toSpliced(4, 0, 'host all all all trust').join('\n'));
    expect(ruleFileFaults(forged, rules, digest)).toEqual(['it has a rule too many: host all all all trust']);
    const broken = sealed(`${text}host nonsense\n`);
    expect(ruleFileFaults(broken, rules, digest)).toEqual(['line 7: user is missing']);
  });

  test('another order of the same rules is a fault, since the first match wins', () => {
    const rules: RuleSet = { engineId, generation: 1, profiles: [] };
    const lines = renderRuleFile(rules, digest).split('\n');
    const swapped = sealed(
      lines
        .with(3, lines[4] ?? '')
        .with(4, lines[3] ?? '')
        .join('\n'),
    );
    expect(ruleFileFaults(swapped, rules, digest)).toEqual([
      'its rules stand in another order, and the first match wins',
    ]);
  });

  test('B044: the same rules are the same bytes, in whatever order they are listed', () => {
    const one = {
      engineId,
      generation: 1,
      profiles: [
        { name: 'b', cidrs: ['10.0.0.2/32', '10.0.0.1/32'] },
        { name: 'a', cidrs: [] },
      ],
    };
    const other = {
      engineId,
      generation: 1,
      profiles: [
        { name: 'a', cidrs: [] },
        { name: 'b', cidrs: ['10.0.0.1/32', '10.0.0.2/32', '10.0.0.1/32'] },
      ],
    };
    expect(renderRuleFile(one, digest)).toBe(renderRuleFile(other, digest));
    expect(diffLines(ruleLines(one), ruleLines(other))).toEqual({ added: [], removed: [], reordered: false });
  });

  test('a profile that cannot be written is refused', () => {
    for (const profile of [
      { name: 'a\nb', cidrs: ['10.0.0.0/8'] },
      { name: 'a', cidrs: ['10.0.0.1/8'] },
      { name: 'a', cidrs: ['all'] },
    ])
      expect(() => renderRuleFile({ engineId, generation: 1, profiles: [profile] }, digest)).toThrow(TypeError);
  });
});

/** The text with the digest that its content asks for: an edit by somebody who knows the form. */
function sealed(text: string): string {
  const [head = '', , ...body] = text.split('\n');
  return [head, `# digest=${digest([head, ...body].join('\n'))}`, ...body].join('\n');
}

describe('networks', () => {
  test.each([
    '10.0.0.0/8',
    '0.0.0.0/0',
    '192.168.1.7/32',
    '::/0',
    '::1/128',
    'fd00::/8',
    '1:2:3:4:5:6:7:8/128',
    '2001:DB8::/32',
  ])('%s is one', (text) => {
    expect(cidrFault(text)).toBeUndefined();
  });
  test.each([
    '',
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0/24',
    '010.0.0.0/8',
    '256.0.0.0/8',
    '10.0.0.1/24',
    'fe80::1/64',
    ':::/0',
    '1::2::3/128',
    '1:2:3/64',
    '::1/129',
    'all',
    '10.0.0.0/8\n',
    '10.0.0.0/8/8',
    '::ffff:1.2.3.4/128',
  ])('%j is none', (text) => {
    expect(cidrFault(text)).toEqual(expect.any(String));
  });
});
