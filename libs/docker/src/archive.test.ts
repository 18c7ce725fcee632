import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pack } from 'tar-stream';
import { packFiles, unpackFiles } from './archive.ts';

const MAX = 1_000_000;
const owned = { mode: 0o400, uid: 1000, gid: 1001 };

async function bytesOf(archive: ReturnType<typeof pack>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe('an archive', () => {
  test('brings back names, owners, modes and contents as they went in, however its bytes are cut', async () => {
    const file = fc.record({
      name: fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.]{0,119}$/),
      mode: fc.constantFrom(0o400, 0o444, 0o755),
      uid: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      gid: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      content: fc.string({ unit: 'grapheme', maxLength: 2_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(file, { maxLength: 5 }), fc.integer({ min: 1, max: 700 }), async (files, size) => {
        const archive = await packFiles(files);
        const chunks = Array.from({ length: Math.ceil(archive.length / size) }, (_, index) =>
          archive.subarray(index * size, (index + 1) * size),
        );
        const found = await unpackFiles(Readable.from(chunks), MAX);
        expect(
          found.map(({ content, type: _type, target: _target, ...rest }) => ({ ...rest, content: content.toString() })),
        ).toEqual(files);
      }),
      { numRuns: 50 },
    );
  });

  test('tells files from folders, links and whatever else', async () => {
    const archive = pack();
    archive.entry({ name: 'surefoot/', type: 'directory', mode: 0o755 });
    archive.entry({ name: 'passwd', type: 'symlink', linkname: '../x' });
    archive.entry({ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 });
    archive.finalize();
    const found = await unpackFiles(Readable.from([await bytesOf(archive)]), MAX);
    expect(found.map(({ name, type, target }) => [name.replace('/', ''), type, target])).toEqual([
      ['surefoot', 'directory', undefined],
      ['passwd', 'symlink', '../x'],
      ['null', 'other', undefined],
    ]);
  });

  test('that is cut, broken or larger than anything of ours is an error', async () => {
    const archive = await packFiles([{ name: 'a', ...owned, content: 'x'.repeat(5_000) }]);
    await expect(unpackFiles(Readable.from([archive.subarray(0, 2_000)]), MAX)).rejects.toMatchObject({ kind: 'lost' });
    await expect(unpackFiles(Readable.from([Buffer.alloc(2_000, 7)]), MAX)).rejects.toMatchObject({ kind: 'lost' });
    await expect(unpackFiles(Readable.from([archive]), 4_000)).rejects.toMatchObject({ kind: 'failed' });
  });
});
