import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { environmentNames } from '#kernel';
import { loginAad, open } from '#settings';
import { newLogins, randomPassword } from './logins.ts';

test('a password has 28 letters and digits, no two the same', () => {
  const passwords = Array.from({ length: 200 }, () => randomPassword());
  for (const password of passwords) expect(password).toMatch(/^[A-Za-z0-9]{28}$/);
  expect(new Set(passwords).size).toBe(passwords.length);
});

test('bytes that would favour some characters are drawn again', () => {
  let draws = 0;
  const draw = (bytes: number) => Buffer.alloc(bytes, draws++ === 0 ? 255 : 61);
  expect(randomPassword(draw)).toBe('9'.repeat(28));
  expect(draws).toBe(2);
});

test('each tier has a login whose sealed verifier belongs to its sealed password, and to nobody else’s place', async () => {
  const key = randomBytes(32);
  const id = '0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d';
  const logins = await newLogins(key, id, environmentNames('a-"b"', id));
  expect(logins.map(({ tier, userName }) => [tier, userName])).toEqual([
    ['migrate', 'a-"b"_0b8fd4c2_migrate'],
    ['app', 'a-"b"_0b8fd4c2_app'],
    ['readonly', 'a-"b"_0b8fd4c2_readonly'],
  ]);
  for (const { tier, passwordSealed, verifierSealed } of logins) {
    expect(open(key, passwordSealed, loginAad(id, tier, 'password'))).toMatch(/^[A-Za-z0-9]{28}$/);
    expect(open(key, verifierSealed, loginAad(id, tier, 'verifier'))).toMatch(/^SCRAM-SHA-256\$4096:/);
    expect(() => open(key, passwordSealed, loginAad(id, tier, 'verifier'))).toThrow();
  }
});
