/** Whether somebody who wrote one word meant another. */

const DISTANCE_MAX = 2;
const PREFIX_MIN = 3;

/** The same but for how it is written, its beginning, or a slip or two. */
export function isNear(key: string, name: string): boolean {
  const [one, other] = [key, name].map((text) => text.toLowerCase().replace(/[^a-z0-9]/g, '')) as [string, string];
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (short.length < PREFIX_MIN) return false;
  return long.startsWith(short) || (short.length > PREFIX_MIN && distance(one, other) <= DISTANCE_MAX);
}

/** Of Levenshtein, for two words of which neither is long. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > DISTANCE_MAX) return DISTANCE_MAX + 1;
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(one).entries()) {
    const next = [index + 1];
    for (const [column, against] of Array.from(other).entries())
      next.push(
        Math.min(
          (next[column] ?? 0) + 1,
          (row[column + 1] ?? 0) + 1,
          (row[column] ?? 0) + (letter === against ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
