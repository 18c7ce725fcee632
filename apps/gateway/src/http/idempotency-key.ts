/** `Idempotency-Key` (DESIGN §9): what makes two requests the same. */
import { createHash, createHmac } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Idempotency } from '#catalog';
import type { Principal } from '../access/principal.ts';
import { fieldFault } from './field-faults.ts';

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * @param digestKey for a body with secrets: the digest is kept, and what is short could be guessed from a plain one
 * @throws Problem `invalid_request` for a key that cannot be one
 */
export function idempotencyOf(
  request: Pick<FastifyRequest, 'headers' | 'method' | 'url' | 'body'>,
  principal: Pick<Principal, 'keyId'>,
  digestKey?: Buffer,
): { readonly idempotency?: Idempotency } {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return {};
  if (typeof key !== 'string' || !KEY.test(key))
    throw fieldFault('Idempotency-Key', 'format', 'a key is 1 to 255 printable ASCII characters without spaces');
  const digest = (digestKey === undefined ? createHash('sha256') : createHmac('sha256', digestKey))
    .update(JSON.stringify([request.method, request.url.split('?')[0], canonical(request.body ?? null)]))
    .digest();
  return { idempotency: { apiKeyId: principal.keyId, key, digest } };
}

/** The order of fields does not make a body another one. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, item]) => [name, canonical(item)]);
}
