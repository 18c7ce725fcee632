import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readEvents, type ServerEvent } from './event-stream.ts';

async function read(chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  async function* bytes() {
    yield* chunks;
  }
  for await (const event of readEvents(bytes())) events.push(event);
  return events;
}

test('events are read, comments and what is unfinished at the end are not', async () => {
  const text = ': hello\n\nevent: operation\nid: 1\ndata: {"a":1}\n\ndata: x\ndata: y\n\nevent: operation\ndata: cut';
  expect(await read([Buffer.from(text)])).toEqual([
    { event: 'operation', data: '{"a":1}' },
    { event: 'message', data: 'x\ny' },
  ]);
});

test('however the bytes are cut, the events are the same', async () => {
  const bytes = Buffer.from('event: operation\r\ndata: {"name":"grün 🐘"}\r\n\r\nevent: b\ndata: 2\n\n');
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 6 }), async (cuts) => {
      const ends = [...cuts.sort((a, b) => a - b), bytes.length];
      const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
      expect(await read(chunks)).toEqual([
        { event: 'operation', data: '{"name":"grün 🐘"}' },
        { event: 'b', data: '2' },
      ]);
    }),
  );
});
