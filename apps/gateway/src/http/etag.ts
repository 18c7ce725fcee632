/** ETag and If-Match (RFC 9110, 8.8.3 and 13.1): the version of a row, quoted. */

export function etagOf(version: string): string {
  return `"${version}"`;
}

/** Weak comparison, as If-None-Match asks for. */
export function matchesEtag(header: string | undefined, version: string): boolean {
  if (header === undefined) return false;
  return header === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etagOf(version));
}

/**
 * The version that a change is meant for; nothing when any will do.
 * @param current used when one of several given tags is it
 */
export function expectedVersion(header: string | undefined, current: string): { readonly ifVersion?: string } {
  if (header === undefined || header.trim() === '*') return {};
  const tags = header.split(',').map((tag) => tag.trim());
  if (tags.includes(etagOf(current))) return { ifVersion: current };
  // Strong comparison: what is none of them has changed, and the transaction says so.
  return { ifVersion: tags[0]?.replaceAll('"', '') ?? '' };
}
