/**
 * Age: a record that went back in time looks like absence, so absence counts only between records of the same age
 * (DESIGN §3, "Age"). The catalog commits a claim's number first, then the host's epoch file, then the engine gets it with
 * the first token; so the numbers can only stand in one order unless one of the three was set back.
 */
import type { Reason } from '#kernel';

export interface AgeRecord {
  /** A UUID made with the record: another one means another catalog, state folder or engine volume. */
  readonly identity: string;
  readonly claimNumber: number;
}

/**
 * @param where `host` or `engine main`, for the message
 * @param catalog identity and last claim number that the catalog committed for this place
 * @param settledClaim the highest claim number of which the catalog has an effect settled as applied at this place; 0 for none
 * @param found what the place itself says; undefined when it has no record at all
 */
export function compareAge(
  where: string,
  catalog: AgeRecord,
  settledClaim: number,
  found: AgeRecord | undefined,
): Reason | undefined {
  if (found === undefined)
    return settledClaim === 0
      ? undefined
      : age(`${where} has no age record, but the catalog settled claim ${settledClaim} there: its state was lost`);
  if (found.identity !== catalog.identity)
    return age(`${where} has identity ${found.identity}, the catalog expects ${catalog.identity}`);
  if (found.claimNumber > catalog.claimNumber)
    return age(
      `${where} has seen claim ${found.claimNumber}, the catalog only ${catalog.claimNumber}: the catalog went back in time`,
    );
  if (found.claimNumber < settledClaim)
    return age(
      `${where} has seen claim ${found.claimNumber}, but the catalog settled claim ${settledClaim} there: it went back in time`,
    );
  return undefined;
}

function age(message: string): Reason {
  return { code: 'age', message };
}
