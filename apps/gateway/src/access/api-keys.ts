/**
 * API keys (DESIGN §10). A key is random, so the catalog keeps its SHA-256; finding the row by that hash is the comparison.
 *
 * A key that was found is remembered for a few seconds: a revoked one works for that long at most. A key that was not
 * found is not remembered, so that a new one works at once.
 */
import { createHash } from 'node:crypto';
import { type ApiKey, type Catalog, findApiKey } from '#catalog';
import { Problem } from '#kernel';
import { type Role, ROLES } from '#protocol';
import type { Principal } from './principal.ts';

/** How long a revoked key may still be accepted. */
const REMEMBERED_MS = 5_000;
const REMEMBERED_MAX = 1_000;

interface Remembered {
  readonly principal: Promise<Principal | undefined>;
  readonly until: number;
}

export class ApiKeys {
  readonly #find: (hash: Buffer) => Promise<ApiKey | undefined>;
  readonly #now: () => number;
  readonly #remembered = new Map<string, Remembered>();

  constructor(find: (hash: Buffer) => Promise<ApiKey | undefined>, now: () => number = () => performance.now()) {
    this.#find = find;
    this.#now = now;
  }

  static of(source: { readonly catalog: Catalog }): ApiKeys {
    return new ApiKeys((hash) => findApiKey(source.catalog, hash));
  }

  /** @throws Problem `unauthenticated`; CatalogUnavailable */
  async authenticate(authorization: string | undefined): Promise<Principal> {
    const key = bearerKey(authorization);
    const principal = key === undefined ? undefined : await this.#principal(key);
    if (principal === undefined)
      throw new Problem(
        'unauthenticated',
        'send a valid key as "Authorization: Bearer …"; local.env has the first one',
      );
    return principal;
  }

  async #principal(key: string): Promise<Principal | undefined> {
    const hash = createHash('sha256').update(key).digest();
    const slot = hash.toString('base64');
    const remembered = this.#remembered.get(slot);
    if (remembered !== undefined && remembered.until > this.#now()) return remembered.principal;
    const principal = this.#find(hash).then(toPrincipal);
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear();
    this.#remembered.set(slot, { principal, until: this.#now() + REMEMBERED_MS });
    try {
      const found = await principal;
      if (found === undefined) this.#remembered.delete(slot);
      return found;
    } catch (error) {
      this.#remembered.delete(slot);
      throw error;
    }
  }
}

/** RFC 6750, 2.1: the scheme's name is not case-sensitive. */
function bearerKey(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~+/=-]{1,512})$/i.exec(authorization ?? '')?.[1];
}

function toPrincipal(key: ApiKey | undefined): Principal | undefined {
  if (key === undefined || !isRole(key.role)) return undefined;
  return { keyId: key.id, name: key.name, role: key.role, projects: key.project_ids };
}

function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}
