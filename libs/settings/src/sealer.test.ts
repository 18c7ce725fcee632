import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { derivedKey, open, readSealingKey, seal, SealBroken, UnsafeState } from './index.ts';

const key = randomBytes(32);
const AAD = 'login:7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11:app:password';

test('what is sealed opens again, whatever it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, aad) => {
      expect(open(key, seal(key, text, aad), aad)).toBe(text);
    }),
  );
});

test('the same secret is never sealed to the same bytes', () => {
  expect(seal(key, 'secret', AAD).equals(seal(key, 'secret', AAD))).toBe(false);
});

test('a change of any single bit is seen', () => {
  const sealed = seal(key, 'secret', AAD);
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    expect(() => open(key, changed, AAD)).toThrow(SealBroken);
  }
});

test('a value cut anywhere is seen, also where the tag would be short', () => {
  const sealed = seal(key, 'secret', AAD);
  for (let length = 0; length < sealed.length; length += 1)
    expect(() => open(key, sealed.subarray(0, length), AAD)).toThrow(SealBroken);
});

test('a value moved to another place, or another key, does not open', () => {
  const sealed = seal(key, 'secret', AAD);
  expect(() => open(key, sealed, AAD.replace('app', 'migrate'))).toThrow(SealBroken);
  expect(() => open(randomBytes(32), sealed, AAD)).toThrow(SealBroken);
});

test('a failure to open tells the place, never the secret', () => {
  expect(() => open(randomBytes(32), seal(key, 'hunter2', AAD), AAD)).toThrow(`the sealed value for ${AAD}`);
});

test('the key file holds 32 bytes in base64, closed to others, or is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealer-'));
  const file = (name: string, text: string, mode: number): string => {
    writeFileSync(join(folder, name), text, { mode });
    return join(folder, name);
  };
  try {
    expect(readSealingKey(file('good', `${key.toString('base64')}\n`, 0o600)).equals(key)).toBe(true);
    expect(() => readSealingKey(file('open', key.toString('base64'), 0o644))).toThrow(UnsafeState);
    expect(() => readSealingKey(file('short', randomBytes(16).toString('base64'), 0o600))).toThrow(UnsafeState);
    expect(() => readSealingKey(file('torn', key.toString('base64').slice(0, 20), 0o600))).toThrow(UnsafeState);
    expect(() => readSealingKey(file('empty', '', 0o600))).toThrow(UnsafeState);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a derived key is the same each time, and another for another purpose or key', () => {
  const derived = derivedKey(key, 'one');
  expect(derived).toEqual(derivedKey(key, 'one'));
  expect(derived).toHaveLength(32);
  for (const other of [key, derivedKey(key, 'two'), derivedKey(randomBytes(32), 'one')])
    expect(other).not.toEqual(derived);
});
