import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Problem } from '#kernel';
import { fromNameCursor, fromTimeCursor, nameCursor, timeCursor, toPage } from './page.ts';

const ID = '0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d';

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    return error instanceof Problem ? error.errors[0]?.field : 'another error';
  }
  return undefined;
}

test.each(['2026-11-29 16:48:08.092+00', '2026-11-29 16:48:08+05:30', '2026-11-29 16:48:08.092123-03'])(
  'a cursor leads back to the place it was made of: %s',
  (at) => {
    expect(fromTimeCursor(timeCursor({ page_at: at, id: ID }))).toEqual({ at, id: ID });
  },
);

test('a cursor by name holds any name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      fc.pre(!name.includes('\0') && name.isWellFormed());
      expect(fromNameCursor(nameCursor({ name }))).toBe(name);
    }),
  );
});

test('what is no cursor is refused as the field it is, whatever it holds', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(codeOf(() => fromTimeCursor(text))).toBe('cursor');
    }),
  );
  const made = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  for (const parts of [[], ['x', ID], ['2026-11-29 16:48:08+00', "' or true"], [1, 2], {}, null, 'text', ['a\0b']])
    expect(codeOf(() => fromTimeCursor(made(parts)))).toBe('cursor');
  expect(codeOf(() => fromNameCursor(made(['a\0b'])))).toBe('cursor');
});

test('a page has a next one only when a row beyond it was read', () => {
  const rows = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  const page = toPage(rows, 2, (row) => row.name, nameCursor);
  expect(page.items).toEqual(['a', 'b']);
  expect(fromNameCursor(page.nextCursor ?? '')).toBe('b');
  expect(toPage(rows, 3, (row) => row.name, nameCursor)).toEqual({ items: ['a', 'b', 'c'], nextCursor: null });
  expect(toPage([], 3, String, nameCursor)).toEqual({ items: [], nextCursor: null });
});
