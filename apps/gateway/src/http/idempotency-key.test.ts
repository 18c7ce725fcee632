import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { Problem } from '#kernel';
import { idempotencyOf } from './idempotency-key.ts';

const CALLER = { keyId: '0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d' };
const REQUEST = {
  method: 'POST',
  url: '/v1/projects/default/environments',
  headers: { 'idempotency-key': 'k' },
  body: { name: 'a', labels: { x: '1', y: '2' } } as unknown,
};

function digest(changes: Partial<typeof REQUEST>): string | undefined {
  return idempotencyOf({ ...REQUEST, ...changes }, CALLER).idempotency?.digest.toString('hex');
}

test('without the header there is no idempotency', () => {
  expect(idempotencyOf({ ...REQUEST, headers: {} }, CALLER)).toEqual({});
});

test('the order of fields makes no other request', () => {
  expect(digest({ body: { labels: { y: '2', x: '1' }, name: 'a' } })).toBe(digest({}));
});

test('B121: another method, path or body makes another request', () => {
  const digests = [
    digest({}),
    digest({ method: 'DELETE' }),
    digest({ url: '/v1/projects/other/environments' }),
    digest({ body: { name: 'b', labels: { x: '1', y: '2' } } }),
    digest({ body: { name: 'a', labels: { x: '1' } } }),
    digest({ body: undefined }),
    digest({ body: [['name', 'a']] }),
  ];
  expect(new Set(digests).size).toBe(digests.length);
});

test('a body with secrets has a keyed digest: the same for the same request, and not to be guessed without the key', () => {
  const keyed = (key: Buffer, body: unknown = REQUEST.body) =>
    idempotencyOf({ ...REQUEST, body }, CALLER, key).idempotency?.digest.toString('hex');
  const [one, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  expect(keyed(one)).toBe(keyed(one, { labels: { y: '2', x: '1' }, name: 'a' }));
  expect(keyed(one)).toHaveLength(64);
  expect(new Set([digest({}), keyed(one), keyed(other), keyed(one, { name: 'a' })]).size).toBe(4);
});

test('the digest of a body without secrets is the one that earlier versions kept', () => {
  const text = JSON.stringify([
    'POST',
    REQUEST.url,
    [
      [
        'labels',
        [
          ['x', '1'],
          ['y', '2'],
        ],
      ],
      ['name', 'a'],
    ],
  ]);
  expect(digest({})).toBe(createHash('sha256').update(text).digest('hex'));
});

test.each(['', 'with space', 'ümlaut', 'x'.repeat(256)])('the key %j is refused as the field it is', (key) => {
  expect(() => idempotencyOf({ ...REQUEST, headers: { 'idempotency-key': key } }, CALLER)).toThrow(Problem);
});
