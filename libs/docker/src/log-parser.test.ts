import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { LOG_LINE_MAX_BYTES, type LogLine } from '#kernel';
import { logParser } from './log-parser.ts';

const AT = '2026-01-01T00:00:00.000000001Z';
const LATER = '2026-01-01T00:00:00.000000002Z';
const ENTRY_MAX_BYTES = 16 * 1024;

function frame(stream: 1 | 2 | 3, payload: string | Buffer): Buffer {
  const bytes = Buffer.from(payload);
  const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

/** As the daemon writes a line: in entries of at most 16 KiB, each a frame with the line's time. */
function framesOf(stream: 1 | 2, at: string, line: Buffer): Buffer {
  const whole = Buffer.concat([line, Buffer.from('\n')]);
  const frames: Buffer[] = [];
  for (let from = 0; from < whole.length; from += ENTRY_MAX_BYTES)
    frames.push(frame(stream, Buffer.concat([Buffer.from(`${at} `), whole.subarray(from, from + ENTRY_MAX_BYTES)])));
  return Buffer.concat(frames);
}

function parse(terminal: boolean, chunks: readonly Buffer[]): readonly LogLine[] {
  const parser = logParser(terminal);
  return [...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end()];
}

function cutAt(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const ends = [...cuts].sort((a, b) => a - b).concat(bytes.length);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const anyBytes = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);
const anyLine = anyBytes.map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x0a && byte !== 0x0d)));
const cutsOf = (bytes: Buffer) => fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 });

describe('frames', () => {
  test('however the bytes are cut, in letters and in headers, the lines are those that were written', () => {
    const written = fc.array(fc.record({ stream: fc.constantFrom(1 as const, 2 as const), line: anyLine }), {
      maxLength: 12,
    });
    const cut = written.chain((lines) => {
      const bytes = Buffer.concat(lines.map(({ stream, line }) => framesOf(stream, AT, line)));
      return fc.tuple(fc.constant(lines), fc.constant(bytes), cutsOf(bytes));
    });
    fc.assert(
      fc.property(cut, ([lines, bytes, cuts]) => {
        expect(parse(false, cutAt(bytes, cuts))).toEqual(
          lines.map(({ stream, line }) => ({
            at: AT,
            stream: stream === 1 ? 'stdout' : 'stderr',
            text: line.toString('utf8'),
          })),
        );
      }),
    );
  });

  test('a letter that the daemon parts between two entries of a line is whole, whatever the other stream says meanwhile', () => {
    const line = Buffer.from(`${'x'.repeat(ENTRY_MAX_BYTES - 10)}${'é🐘'.repeat(3)}`);
    const first = frame(1, Buffer.concat([Buffer.from(`${AT} `), line.subarray(0, ENTRY_MAX_BYTES - 9)]));
    const second = frame(
      1,
      Buffer.concat([Buffer.from(`${AT} `), line.subarray(ENTRY_MAX_BYTES - 9), Buffer.from('\n')]),
    );
    const lines = parse(false, [first, frame(2, `${AT} oops\n`), second]);
    expect(lines.map(({ stream }) => stream)).toEqual(['stderr', 'stdout']);
    // The end is beyond what is shown; the letters before it are as they were.
    expect(lines[1]?.text).toBe(`${'x'.repeat(ENTRY_MAX_BYTES - 10)}é🐘é`);
    expect(lines[1]?.cut).toBe(true);
  });

  test('a line of just the bytes that are shown is whole, one byte more is cut and said to be', () => {
    const lines = [0, 1, 100_000].map((more) => 'x'.repeat(LOG_LINE_MAX_BYTES + more));
    const parsed = parse(
      false,
      lines.map((line) => framesOf(1, AT, Buffer.from(line))),
    );
    expect(parsed.map(({ text }) => text)).toEqual(lines.map(() => lines[0]));
    expect(parsed.map(({ cut }) => cut)).toEqual([undefined, true, true]);
  });

  test('what a process wrote last, without a line end, does not run into what its successor wrote first', () => {
    const bytes = [frame(1, `${AT} last words`), frame(1, `${LATER} first words\n`), frame(2, `${LATER} prompt> `)];
    expect(parse(false, bytes)).toEqual([
      { at: AT, stream: 'stdout', text: 'last words' },
      { at: LATER, stream: 'stdout', text: 'first words' },
      { at: LATER, stream: 'stderr', text: 'prompt> ' },
    ]);
  });

  test('empty lines, carriage returns and control characters are kept', () => {
    const texts = ['', '\r', '\u001b[31mred\u001b[0m\t\u0000'];
    const parsed = parse(
      false,
      texts.map((text) => framesOf(1, AT, Buffer.from(text))),
    );
    expect(parsed.map(({ text }) => text)).toEqual(texts);
  });

  test('the daemon’s own report of a failure is one here', () => {
    const broken = frame(3, 'Error grabbing logs: invalid character\n');
    expect(() => parse(false, [framesOf(1, AT, Buffer.from('x')), broken])).toThrow(
      expect.objectContaining({
        kind: 'failed',
        message: 'the Docker daemon cannot read the log: Error grabbing logs: invalid character',
      }),
    );
  });

  test.each([
    ['no header', Buffer.from(`${AT} secret text of an application\n`)],
    ['a length beyond any entry', Buffer.from([1, 0, 0, 0, 0xff, 0, 0, 0])],
    ['an entry without a time', frame(1, 'secret text of an application\n')],
  ])('what has %s is no log, and its text is not repeated', (_what, bytes) => {
    expect(() => parse(false, [bytes])).toThrow(
      expect.objectContaining({ kind: 'failed', message: 'the Docker daemon sent something else than a log' }),
    );
  });
});

describe('a container with a terminal', () => {
  test('however the bytes are cut, the lines are those that were written, without the terminal’s carriage returns', () => {
    const cut = fc.array(anyLine, { maxLength: 12 }).chain((lines) => {
      const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(`${AT} `), line, Buffer.from('\r\n')]));
      return fc.tuple(fc.constant(lines), fc.constant(bytes), cutsOf(bytes));
    });
    fc.assert(
      fc.property(cut, ([lines, bytes, cuts]) => {
        expect(parse(true, cutAt(bytes, cuts))).toEqual(
          lines.map((line) => ({ at: AT, stream: 'stdout', text: line.toString('utf8') })),
        );
      }),
    );
  });

  test('long lines are cut where others are, in a zone of any length', () => {
    for (const at of [AT, '2026-01-01T00:00:00.000000001+01:00'])
      for (const [more, cut] of [
        ['', undefined],
        ['\r', undefined],
        ['x\r', true],
        ['\rx', true],
        [`x`.repeat(50_000), true],
      ] as const) {
        const text = 'x'.repeat(LOG_LINE_MAX_BYTES);
        expect(parse(true, [Buffer.from(`${at} ${text}${more}\n`)])).toEqual([
          { at, stream: 'stdout', text, ...(cut === undefined ? {} : { cut }) },
        ]);
      }
  });

  test('a prompt without a line end is told at the end, and the daemon’s report without a time has that before it', () => {
    const lines = parse(true, [Buffer.from(`${AT} x\r\nError grabbing logs: EOF\n${LATER} $ `)]);
    expect(lines.map(({ at, text }) => [at, text])).toEqual([
      [AT, 'x'],
      [AT, 'Error grabbing logs: EOF'],
      [LATER, '$ '],
    ]);
    expect(() => parse(true, [Buffer.from('no time\n')])).toThrow('something else than a log');
  });
});
