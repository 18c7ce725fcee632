/**
 * SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), computed here so that a clear password never reaches a server: PostgreSQL
 * stores a string of this form as it is. Our passwords are printable ASCII, which SASLprep leaves alone.
 */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** PostgreSQL's own default; our passwords are random, so more iterations would slow down logins and nobody else. */
const ITERATIONS = 4096;
const SALT_BYTES = 16;

/** @returns `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>` */
export async function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(password)) throw new TypeError('a password of ours is printable ASCII without spaces');
  const salted = await promisify(pbkdf2)(password, salt, ITERATIONS, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
