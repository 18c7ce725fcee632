import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { redaction } from './redaction.ts';

const password = 'p@ss/w?rd 100%';
const key = ['-----BEGIN KEY-----', 'MIIEvQIBADANBgkq', 'short', 'aGVsbG8gd29ybGQh', '-----END KEY-----', ''].join(
  '\n',
);
const files = {
  database_url: `postgresql://hello_app:${encodeURIComponent(password)}@db:5432/hello?sslmode=verify-full`,
  'ca.pem': '-----BEGIN CERTIFICATE-----\nMIIBeTCCAR+gAwIB\n-----END CERTIFICATE-----\n',
  TOKEN: 'a.b*c$d{1}(x)[y]\\z',
  KEY: key,
  PIN: '47',
};
const hide = redaction(files);

describe('what a service said', () => {
  test.each([
    ['a secret', `token is ${files.TOKEN}!`, 'token is …!'],
    ['a short one', 'the pin is 47', 'the pin is …'],
    ['the connection string', `connecting to ${files.database_url} now`, 'connecting to … now'],
    ['the password as the connection string has it', encodeURIComponent(password), '…'],
    [
      'the password as it is meant',
      `password authentication failed with "${password}"`,
      'password authentication failed with "…"',
    ],
    ['a percent-encoded secret', encodeURIComponent(files.TOKEN), '…'],
    ['one in lower-case digits', encodeURIComponent(files.TOKEN).replaceAll(/%../g, (code) => code.toLowerCase()), '…'],
    ['one inside JSON', JSON.stringify({ token: files.TOKEN }), '{"token":"…"}'],
    ['a whole key', `key:\n${key}`, 'key:\n…'],
    ['one line of it', 'at aGVsbG8gd29ybGQh', 'at …'],
    ['a whole key inside JSON', JSON.stringify(key), '"…"'],
    ['a key with other line ends', key.replaceAll('\n', '\r\n'), ['…', '…', 'short', '…', '…', ''].join('\r\n')],
  ])('is shown without %s', (_what, text, shown) => {
    expect(hide(text)).toBe(shown);
  });

  test('is shown with what is public, and otherwise as it was', () => {
    const text = `db:5432 hello_app verify-full short ${files['ca.pem']}`;
    expect(hide(text)).toBe(text);
    expect(redaction()(files.TOKEN)).toBe(files.TOKEN);
    expect(redaction({ EMPTY: '', BLANK: '\n' })('a b')).toBe('a b');
  });

  test('is shown in good time also where there are as many secrets as a service may have, each as large as it may be', () => {
    const line = (secret: number, number: number): string => `secret ${secret} line ${number} `.padEnd(64, '=+/');
    const lines = Array.from({ length: 1_000 }, (_, number) => number);
    const many = Array.from({ length: 50 }, (_, secret) => [
      `S${secret}`,
      lines.map((n) => line(secret, n)).join('\n'),
    ]);
    const before = performance.now();
    const shown = redaction(Object.fromEntries(many) as Record<string, string>)(
      `${'x'.repeat(10_000)} ${line(49, 999)}|${encodeURIComponent(line(0, 0))}`,
    );
    expect(shown).toBe(`${'x'.repeat(10_000)} …|…`);
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  test('never holds a secret, whatever that is and wherever it stands', () => {
    const secret = fc.string({ minLength: 1, maxLength: 40, unit: 'binary' }).filter((text) => !text.includes('…'));
    fc.assert(
      fc.property(secret, secret, fc.string(), fc.string(), (one, other, before, after) => {
        const shown = redaction({ ONE: one, OTHER: other })(
          `${before}${one}${after}${encodeURIComponent(other.toWellFormed())}`,
        );
        expect(shown).not.toContain(one);
        expect(shown).not.toContain(other);
      }),
    );
  });
});
