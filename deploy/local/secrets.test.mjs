import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  brokerPasswordHash,
  isBrokerPasswordHash,
  isScramVerifier,
  newApiKey,
  newPassword,
  scramVerifier,
} from './secrets.mjs';

test('a SCRAM verifier is the one that PostgreSQL computes', () => {
  // Made by a PostgreSQL 17 server: SET password_encryption = 'scram-sha-256'; ALTER ROLE … PASSWORD 'surefoot'.
  const verifier =
    'SCRAM-SHA-256$4096:6lljtVjCbhsrX21K7xEffg==$' +
    'SCTMs16sOONFdF7YDS7+w0voIaU0Q5YAmw2abhB1wao=:gClJvvHb3YaAtG1+tfp8Kzmcfh0DYHtLnaFO/cNXHxI=';
  assert.equal(scramVerifier('surefoot', Buffer.from(verifier.split(':')[1]?.split('$')[0] ?? '', 'base64')), verifier);
  assert.ok(isScramVerifier('surefoot', verifier));
  assert.ok(!isScramVerifier('other', verifier));
  assert.ok(!isScramVerifier('surefoot', 'surefoot'));
});

test('a broker password hash is the one in the documentation of RabbitMQ', () => {
  const hash = brokerPasswordHash('test12', Buffer.from('908DC60A', 'hex'));
  assert.equal(hash, 'kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR');
  assert.ok(isBrokerPasswordHash('test12', hash));
  assert.ok(!isBrokerPasswordHash('test13', hash));
  assert.ok(!isBrokerPasswordHash('test12', ''));
});

test('keys and passwords hold 256 bits and only letters that stand in a URL as they are', () => {
  assert.match(newPassword(), /^[\w-]{43}$/);
  assert.match(newApiKey(), /^sfk_[\w-]{43}$/);
  assert.notEqual(newPassword(), newPassword());
});
