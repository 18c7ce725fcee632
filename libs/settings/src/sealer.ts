/**
 * Credentials at rest: AES-256-GCM (NIST SP 800-38D) under the key in `host/key`.
 *
 * A sealed value is bound to where it belongs (`aad`, such as `login:{environmentId}:app:password`): moved to another row,
 * it does not open. The nonce is random, 96 bits: safe for the 2^32 values that the standard allows under one key.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { readPrivateFile, UnsafeState } from './private-file.ts';

const VERSION = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A sealed value was changed, belongs elsewhere, or was sealed with another key: which of them cannot be told. */
export class SealBroken extends Error {
  constructor(aad: string, options?: { cause?: unknown }) {
    super(`the sealed value for ${aad} does not open`, options);
    this.name = 'SealBroken';
  }
}

/** @throws UnsafeState when the file is not safe, or does not hold a key. */
export function readSealingKey(path: string): Buffer {
  const text = readPrivateFile(path).trim();
  const key = Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES || key.toString('base64') !== text)
    throw new UnsafeState(path, 'does not hold a key', `it is ${KEY_BYTES} bytes in base64; restore it from a copy`);
  return key;
}

/** Version byte, nonce, ciphertext, tag. */
export function seal(key: Buffer, plaintext: string, aad: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(boundTo(aad));
  const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, ciphertext, cipher.getAuthTag()]);
}

/** @throws SealBroken */
export function open(key: Buffer, sealed: Buffer, aad: string): string {
  const [start, end] = [1 + NONCE_BYTES, sealed.length - TAG_BYTES];
  if (sealed[0] !== VERSION || end < start) throw new SealBroken(aad);
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, start), { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo(aad));
  decipher.setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(start, end)), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new SealBroken(aad, { cause: error });
  }
}

/** A key for another use of the same secret (HKDF, RFC 5869): neither tells anything about the other. */
export function derivedKey(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `surefoot ${purpose}`, KEY_BYTES));
}

function boundTo(aad: string): Buffer {
  return Buffer.from(`${VERSION}:${aad}`, 'utf8');
}
