/**
 * The pin: the exact identity of an engine (DESIGN §7). It changes only through a journaled migration; any other
 * difference is refused, naming the field.
 */

export interface Pin {
  readonly containerId: string;
  /** Image id (`sha256:…`). */
  readonly imageDigest: string;
  readonly volumeName: string;
  /** The token in the mark file inside the volume. */
  readonly volumeMark: string;
  /** PostgreSQL's, as a decimal string: it does not fit a JavaScript number. */
  readonly systemIdentifier: string;
  readonly timeline: number;
  /** SHA-256 over the container's and the server's configuration, hexadecimal. */
  readonly configurationDigest: string;
}

const PIN_FIELDS = [
  'containerId',
  'imageDigest',
  'volumeName',
  'volumeMark',
  'systemIdentifier',
  'timeline',
  'configurationDigest',
] as const satisfies readonly (keyof Pin)[];

/** One sentence per field that differs; empty when the engine is the one that was pinned. */
export function pinDifferences(pinned: Pin, found: Pin): readonly string[] {
  return PIN_FIELDS.filter((field) => pinned[field] !== found[field]).map(
    (field) => `${field} is ${String(found[field])}, pinned is ${String(pinned[field])}`,
  );
}
