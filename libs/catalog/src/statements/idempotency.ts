/** One answer per idempotency key (DESIGN §9): the row commits with what it stands for, so there is no key without it. */
import { Problem } from '#kernel';
import type { Tx } from '../catalog.ts';

export interface Idempotency {
  readonly apiKeyId: string;
  readonly key: string;
  /** SHA-256 of method, path and body. */
  readonly digest: Buffer;
}

export type Remembered =
  | { readonly answer: 'first' }
  /** The same request came before; this is what came of it. */
  | { readonly answer: 'repeated'; readonly operationId: string | null; readonly projectId: string | null }
  /** The key was used for another request. */
  | { readonly answer: 'mismatch' };

const REMEMBER = /* sql */ `
  insert into idempotency_keys (api_key_id, key, request_digest, operation_id, project_id) values ($1, $2, $3, $4, $5)
  on conflict do nothing returning 1`;

const RECALL = /* sql */ `
  select request_digest, operation_id, project_id from idempotency_keys where api_key_id = $1 and key = $2`;

/**
 * First in its transaction: a second request with the same key waits here until the first has committed or not.
 * @param made what this request makes, should it be the first
 */
export async function rememberKey(
  tx: Tx,
  idempotency: Idempotency | undefined,
  made: { readonly operationId: string } | { readonly projectId: string },
): Promise<Remembered> {
  if (idempotency === undefined) return { answer: 'first' };
  const { apiKeyId, key, digest } = idempotency;
  const first = await tx.query(REMEMBER, [
    apiKeyId,
    key,
    digest,
    'operationId' in made ? made.operationId : null,
    'projectId' in made ? made.projectId : null,
  ]);
  if (first.length > 0) return { answer: 'first' };
  const [row] = await tx.query<{ request_digest: Buffer; operation_id: string | null; project_id: string | null }>(
    RECALL,
    [apiKeyId, key],
  );
  if (row === undefined || !row.request_digest.equals(digest)) return { answer: 'mismatch' };
  return { answer: 'repeated', operationId: row.operation_id, projectId: row.project_id };
}

export function idempotencyMismatch(): Problem {
  return new Problem('idempotency_mismatch', 'this Idempotency-Key came with another method, path or body before');
}
