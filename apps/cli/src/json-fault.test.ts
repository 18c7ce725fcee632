import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonFault } from './json-fault.ts';

test.each([
  ['', 1, 1],
  ['nothing', 1, 1],
  ['[{"name": "api",}]', 1, 17],
  ['[\n  {"name": "api" "image": "a"}\n]', 2, 18],
  ['[\n  {"name": "api"},\n', 3, 1],
  ["[{'name': 1}]", 1, 3],
  ['[1, 02]', 1, 6],
  ['[] []', 1, 4],
  ['["a\nb"]', 1, 2],
  ['[tru]', 1, 2],
])('%j ends to be JSON in line %d, column %d', (text, line, column) => {
  expect(jsonFault(text)).toEqual({ line, column });
});

test('of what is JSON it finds no fault before its end', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom('', ' ', '\n'), (text, more) => {
      const lines = `${text}${more}`.split('\n');
      expect(jsonFault(`${text}${more}`)).toEqual({ line: lines.length, column: (lines.at(-1) ?? '').length + 1 });
    }),
  );
});

test('what is nested without end is a fault, not the end of this program', () => {
  expect(jsonFault('['.repeat(100_000))).toEqual({ line: 1, column: 102 });
});
