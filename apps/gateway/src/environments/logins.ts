/** Logins of a new environment: passwords of ours, their verifiers, both sealed before they go anywhere (DESIGN §10). */
import { randomBytes } from 'node:crypto';
import type { LoginToCreate } from '#catalog';
import { type EnvironmentNames, TIERS } from '#kernel';
import { scramVerifier } from '#postgres';
import { loginAad, seal } from '#settings';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** 62^28 is 166 bits; letters and digits alone need no escaping in any file or address. */
const PASSWORD_LENGTH = 28;

/** Each character equally likely: bytes beyond the last whole multiple of the alphabet are drawn again. */
export function randomPassword(draw: (bytes: number) => Buffer = randomBytes): string {
  const fair = 256 - (256 % ALPHABET.length);
  let password = '';
  while (password.length < PASSWORD_LENGTH)
    for (const byte of draw(PASSWORD_LENGTH))
      if (byte < fair && password.length < PASSWORD_LENGTH) password += ALPHABET.charAt(byte % ALPHABET.length);
  return password;
}

export async function newLogins(
  sealingKey: Buffer,
  environmentId: string,
  names: EnvironmentNames,
): Promise<readonly LoginToCreate[]> {
  return Promise.all(
    TIERS.map(async (tier) => {
      const password = randomPassword();
      const verifier = await scramVerifier(password);
      return {
        tier,
        userName: names.logins[tier],
        passwordSealed: seal(sealingKey, password, loginAad(environmentId, tier, 'password')),
        verifierSealed: seal(sealingKey, verifier, loginAad(environmentId, tier, 'verifier')),
      };
    }),
  );
}
