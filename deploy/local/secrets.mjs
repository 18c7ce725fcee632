import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Keys and passwords, and the one-way forms of them that servers are given: neither PostgreSQL nor RabbitMQ ever gets
 * a clear password from us, so none can turn up in a container's environment, a server's log or a process list.
 */

/** 256 bits, in letters that stand in URLs and shells as they are. */
export function newPassword() {
  return randomBytes(32).toString('base64url');
}

export function newApiKey() {
  return `sfk_${newPassword()}`;
}

/**
 * What PostgreSQL stores for a password; given in place of one, it is stored verbatim.
 * Source: PostgreSQL manual, pg_authid; RFC 5802 and RFC 7677. Our passwords are ASCII, so SASLprep changes nothing.
 *
 * @param {string} password
 * @param {Buffer} [salt]
 * @param {number} [iterations]
 */
export function scramVerifier(password, salt = randomBytes(16), iterations = 4096) {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64');
  const serverKey = hmac(salted, 'Server Key').toString('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}

/**
 * @param {string} password
 * @param {string} verifier
 */
export function isScramVerifier(password, verifier) {
  const [, iterations, salt] = /^SCRAM-SHA-256\$(\d+):([^$]+)\$/.exec(verifier) ?? [];
  if (iterations === undefined || salt === undefined) return false;
  return isSame(scramVerifier(password, Buffer.from(salt, 'base64'), Number(iterations)), verifier);
}

/** @param {Buffer} key @param {string} text */
function hmac(key, text) {
  return createHmac('sha256', key).update(text).digest();
}

const BROKER_SALT_BYTES = 4;

/**
 * What RabbitMQ stores for a password under `rabbit_password_hashing_sha256`: base64 of the salt, then SHA-256 over
 * salt and password. Source: RabbitMQ documentation, "Password hashing".
 *
 * @param {string} password
 * @param {Buffer} [salt]
 */
export function brokerPasswordHash(password, salt = randomBytes(BROKER_SALT_BYTES)) {
  const digest = createHash('sha256').update(salt).update(password).digest();
  return Buffer.concat([salt, digest]).toString('base64');
}

/**
 * @param {string} password
 * @param {string} hash
 */
export function isBrokerPasswordHash(password, hash) {
  const salt = Buffer.from(hash, 'base64').subarray(0, BROKER_SALT_BYTES);
  return isSame(brokerPasswordHash(password, salt), hash);
}

/** @param {string} a @param {string} b */
function isSame(a, b) {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
