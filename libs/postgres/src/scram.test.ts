import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { scramVerifier } from './scram.ts';

/** The exchange of RFC 7677, section 3: user `user`, password `pencil`. */
const RFC = {
  salt: 'W22ZaJ0SNY7soEsUEjb6gQ==',
  authMessage: [
    'n=user,r=rOprNGfwEbeRWgbNEkqO',
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  ].join(','),
  clientProof: 'dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
  serverSignature: '6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
};

describe('SCRAM verifiers', () => {
  test('accept the proof of RFC 7677’s example, and sign as its server does', async () => {
    const verifier = await scramVerifier('pencil', Buffer.from(RFC.salt, 'base64'));
    const [, iterations, salt, storedKey = '', serverKey = ''] =
      /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)$/.exec(verifier) ?? [];
    expect([iterations, salt]).toEqual(['4096', RFC.salt]);
    const sign = (key: string): Buffer =>
      createHmac('sha256', Buffer.from(key, 'base64')).update(RFC.authMessage).digest();
    expect(sign(serverKey).toString('base64')).toBe(RFC.serverSignature);
    const signature = sign(storedKey);
    const clientKey = Buffer.from(RFC.clientProof, 'base64').map((byte, index) => byte ^ (signature[index] ?? 0));
    expect(createHash('sha256').update(clientKey).digest('base64')).toBe(storedKey);
  });

  test('of one password differ each time: the salt is random', async () => {
    const [one, other] = await Promise.all([scramVerifier('pencil'), scramVerifier('pencil')]);
    expect(one).not.toBe(other);
    expect(one).toMatch(/^SCRAM-SHA-256\$4096:[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$/);
    expect(one).not.toContain('pencil');
  });

  test.each([
    ['nothing', ''],
    ['a space', 'with space'],
    ['letters that are not ASCII', 'pässwörd'],
    ['a soft hyphen', 'soft\u00adhyphen'],
    ['a tab', 'tab\tulator'],
    ['NUL', 'nul\0'],
  ])(
    'B114: a password with %s, which SASLprep or a program might change, is refused, and not repeated in the error',
    async (_what, password) => {
      const error: unknown = await scramVerifier(password).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(TypeError);
      expect(password !== '' && String(error).includes(password)).toBe(false);
    },
  );
});
