/** ETag and If-Match (RFC 9110, 8.8.3 and 13.1): the version of what is shown, quoted. That of its row comes first. */

export function etagOf(version: string): string {
  return `"${version}"`;
}

/** Weak comparison, as If-None-Match asks for. */
export function matchesEtag(header: string | undefined, version: string): boolean {
  if (header === undefined) return false;
  return header === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etagOf(version));
}

/**
 * The version of its row that a change is meant for; nothing when any will do. What is shown beside the row (what was seen of
 * its services) is not what a change is about, and changes without anybody's doing.
 * @param row the version that was read just now, used when one of several given tags is of it
 */
export function expectedVersion(header: string | undefined, row: string): { readonly ifVersion?: string } {
  if (header === undefined || header.trim() === '*') return {};
  const rows = header.split(',').map((tag) => rowOf(tag.trim()));
  // Strong comparison: what is none of them has changed, and the transaction says so.
  return { ifVersion: rows.includes(row) ? row : (rows[0] ?? '') };
}

/** Whatever is not one of ours is left as it is, and is no version of a row. */
function rowOf(tag: string): string {
  return /^"(\d+)(\.[\w-]+)?"$/.exec(tag)?.[1] ?? tag;
}
