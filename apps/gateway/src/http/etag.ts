/** ETag and If-Match (RFC 9110, 8.8.3 and 13.1): the version of what is shown, quoted. */

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
 * @param current what was read just now: the version that is shown, used when one of several given tags is it, and that of
 *   the row that the change is about
 */
export function expectedVersion(
  header: string | undefined,
  current: { readonly shown: string; readonly row: string },
): { readonly ifVersion?: string } {
  if (header === undefined || header.trim() === '*') return {};
  const tags = header.split(',').map((tag) => tag.trim());
  if (tags.includes(etagOf(current.shown))) return { ifVersion: current.row };
  // Strong comparison: what is none of them has changed, and the transaction says so.
  return { ifVersion: tags[0]?.replaceAll('"', '') ?? '' };
}
