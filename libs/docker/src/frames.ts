export interface Frame {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
}

/** Engine API, "Stream format": a byte for the stream, three of nothing, four of length, then that many bytes. */
export function frames(bytes: Buffer): readonly Frame[] {
  const found: Frame[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const length = bytes.readUInt32BE(at + 4);
    found.push({ stream: bytes[at] === 2 ? 'stderr' : 'stdout', bytes: bytes.subarray(at + 8, at + 8 + length) });
    at += 8 + length;
  }
  return found;
}
