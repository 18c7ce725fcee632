import { LOG_ANSWER_MAX_BYTES, type LogLine } from '#kernel';

/** Of an answer, as JSON; a single line may have more. */
const BATCH_MAX_BYTES = 64 * 1024;
const COMMA = 1;

/** Lines on their way, some at a time. */
export class Batch {
  #lines: LogLine[] = [];
  #bytes = 0;
  #sinceMs = 0;

  /** @param nowMs on a clock that only goes forward. @returns false when the line is one too many: take the others first */
  add(line: LogLine, nowMs: number): boolean {
    const bytes = sizeOf(line);
    if (this.#lines.length > 0 && this.#bytes + bytes > BATCH_MAX_BYTES) return false;
    if (this.#lines.length === 0) this.#sinceMs = nowMs;
    this.#lines.push(line);
    this.#bytes += bytes;
    return true;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** When its oldest line came. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  take(): { readonly lines: readonly LogLine[]; readonly bytes: number } {
    const taken = { lines: this.#lines, bytes: this.#bytes };
    this.#lines = [];
    this.#bytes = 0;
    return taken;
  }
}

/** The last lines that fit into one answer. */
export class Newest {
  readonly #lines: { readonly line: LogLine; readonly bytes: number }[] = [];
  #bytes = 0;
  #truncated = false;

  add(line: LogLine): void {
    const bytes = sizeOf(line);
    this.#lines.push({ line, bytes });
    this.#bytes += bytes;
    while (this.#bytes > LOG_ANSWER_MAX_BYTES) {
      this.#bytes -= this.#lines.shift()?.bytes ?? 0;
      this.#truncated = true;
    }
  }

  get lines(): readonly LogLine[] {
    return this.#lines.map(({ line }) => line);
  }

  /** Older ones were left out. */
  get truncated(): boolean {
    return this.#truncated;
  }
}

function sizeOf(line: LogLine): number {
  return Buffer.byteLength(JSON.stringify(line)) + COMMA;
}
