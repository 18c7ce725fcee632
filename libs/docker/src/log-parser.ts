/**
 * A container's log, from the bytes that the daemon sends to lines. However the bytes are cut, the lines are the same.
 *
 * - A frame (Engine API, "Stream format") is a byte for the stream, three of nothing, four of length, then that many bytes.
 *   A container with a terminal has no frames: its lines follow each other.
 * - Asked for timestamps, the daemon writes one before each entry of its log. An entry is a line; a line of more than 16 KiB
 *   is several entries, all but the last without a line end, all with the time of the first. So an entry goes on with an
 *   open line of the same time, and with no other: what a process wrote last, without a line end, is a line of its own.
 */
import { LOG_LINE_MAX_BYTES, type LogLine } from '#kernel';
import { DaemonError } from './errors.ts';

const HEADER_BYTES = 8;
/** Log drivers write entries of up to 1 MiB; anything longer is no frame, but bytes that were taken for a header. */
const FRAME_MAX_BYTES = 2 * 1024 * 1024;
const NEW_LINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** The zone is UTC, or the daemon's own: that depends on the log driver. */
const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)) /;
const TIMESTAMP_MAX_BYTES = 36;

type Stream = LogLine['stream'];

export interface LogParser {
  /** @returns the lines that these bytes end. @throws DaemonError for what is no log, or the daemon's own report of a failure */
  push(chunk: Buffer): readonly LogLine[];
  /** @returns what was written last, without a line end */
  end(): readonly LogLine[];
}

/** @param terminal whether the container has one, which the bytes alone do not tell */
export function logParser(terminal: boolean): LogParser {
  return terminal ? new TerminalParser() : new FrameParser();
}

class FrameParser implements LogParser {
  #rest: Buffer = Buffer.alloc(0);
  readonly #entries = { stdout: new Entries('stdout'), stderr: new Entries('stderr') };

  push(chunk: Buffer): readonly LogLine[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const lines: LogLine[] = [];
    let at = 0;
    for (let length = frameLength(bytes, at); length !== undefined; length = frameLength(bytes, at)) {
      const payload = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
      lines.push(...this.#entries[streamOf(bytes[at] ?? 0, payload)].add(payload));
      at += HEADER_BYTES + length;
    }
    this.#rest = bytes.subarray(at);
    return lines;
  }

  end(): readonly LogLine[] {
    // A frame that was begun and not ended holds no whole entry: the daemon writes each at once.
    return [...this.#entries.stdout.end(), ...this.#entries.stderr.end()];
  }
}

/** @returns of the frame's content; undefined when it is not there as a whole */
function frameLength(bytes: Buffer, at: number): number | undefined {
  if (bytes.length < at + HEADER_BYTES) return undefined;
  const length = bytes.readUInt32BE(at + 4);
  if (bytes.readUIntBE(at + 1, 3) !== 0 || length > FRAME_MAX_BYTES) throw unreadable();
  return bytes.length < at + HEADER_BYTES + length ? undefined : length;
}

function streamOf(type: number, payload: Buffer): Stream {
  switch (type) {
    case 1:
      return 'stdout';
    case 2:
      return 'stderr';
    case 3:
      throw new DaemonError(
        'failed',
        `the Docker daemon cannot read the log: ${payload.toString('utf8', 0, 200).trim()}`,
      );
    default:
      throw unreadable();
  }
}

/** The entries of one stream. */
class Entries {
  readonly #stream: Stream;
  #open: OpenLine | undefined;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  add(entry: Buffer): readonly LogLine[] {
    const { at, text } = readTimestamp(entry);
    if (at === undefined) throw unreadable();
    const lines = this.#open === undefined || this.#open.at === at ? [] : this.end();
    for (let from = 0; from < text.length;) {
      const found = text.indexOf(NEW_LINE, from);
      const to = found === -1 ? text.length : found;
      this.#open ??= new OpenLine(this.#stream, at);
      this.#open.add(text.subarray(from, to));
      if (found !== -1) lines.push(...this.end());
      from = to + 1;
    }
    return lines;
  }

  end(): LogLine[] {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? [] : [open.line()];
  }
}

/** Bytes are kept as far as they are shown. */
class OpenLine {
  readonly at: string;
  readonly #stream: Stream;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #cut = false;

  constructor(stream: Stream, at: string) {
    this.#stream = stream;
    this.at = at;
  }

  add(bytes: Buffer): void {
    const shown = bytes.subarray(0, LOG_LINE_MAX_BYTES - this.#bytes);
    if (shown.length < bytes.length) this.#cut = true;
    if (shown.length > 0) this.#parts.push(shown);
    this.#bytes += shown.length;
  }

  line(): LogLine {
    return toLine(this.#stream, this.at, Buffer.concat(this.#parts), this.#cut);
  }
}

class TerminalParser implements LogParser {
  #parts: Buffer[] = [];
  #bytes = 0;
  #lastAt: string | undefined;

  push(chunk: Buffer): readonly LogLine[] {
    const lines: LogLine[] = [];
    for (let from = 0; from < chunk.length;) {
      const found = chunk.indexOf(NEW_LINE, from);
      const to = found === -1 ? chunk.length : found;
      this.#add(chunk.subarray(from, to));
      if (found !== -1) lines.push(this.#line());
      from = to + 1;
    }
    return lines;
  }

  end(): readonly LogLine[] {
    return this.#bytes === 0 ? [] : [this.#line()];
  }

  /** One byte more than is shown: it tells that the line went on. A carriage return before the line end is another. */
  #add(bytes: Buffer): void {
    const room = TIMESTAMP_MAX_BYTES + LOG_LINE_MAX_BYTES + 2 - this.#bytes;
    if (room === 0) return;
    this.#parts.push(bytes.subarray(0, room));
    this.#bytes += Math.min(bytes.length, room);
  }

  #line(): LogLine {
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    const { at, text } = readTimestamp(whole);
    // The daemon's own report of a failure has no time; it comes after the lines.
    this.#lastAt = at ?? this.#lastAt;
    if (this.#lastAt === undefined) throw unreadable();
    const shown = text.at(-1) === CARRIAGE_RETURN ? text.subarray(0, -1) : text;
    return toLine('stdout', this.#lastAt, shown.subarray(0, LOG_LINE_MAX_BYTES), shown.length > LOG_LINE_MAX_BYTES);
  }
}

function readTimestamp(bytes: Buffer): { readonly at: string | undefined; readonly text: Buffer } {
  const found = TIMESTAMP.exec(bytes.toString('latin1', 0, TIMESTAMP_MAX_BYTES));
  return { at: found?.[1], text: bytes.subarray(found?.[0].length ?? 0) };
}

function toLine(stream: Stream, at: string, bytes: Buffer, cut: boolean): LogLine {
  if (!cut) return { at, stream, text: bytes.toString('utf8') };
  // A letter that the cut has parted is left out, not replaced: it was written as it should be.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
  return { at, stream, text, cut: true };
}

/** The bytes are not repeated: they may be an application's. */
function unreadable(): DaemonError {
  return new DaemonError('failed', 'the Docker daemon sent something else than a log');
}
