/** Identities. All are random UUIDs (version 4) made by the process that records them first, and never reused. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-9a-f][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Lower-case canonical form only: an id is compared as text in receipts, labels and names. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
