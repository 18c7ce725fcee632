import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { nodeChild, sourceUrl } from '#testing';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rules-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** From the nth call of a function of node:fs on, the disk is full. */
const fullFrom = (call: string, nth: number): string => `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const real = fs.${call};
  let calls = 0;
  fs.${call} = (...args) => {
    if (++calls < ${nth}) return real(...args);
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  };
  syncBuiltinESMExports();`;

test.each([
  ['the old content is written beside it', 'writeSync', 1],
  ['the new content is written beside it', 'writeSync', 2],
  ['the new content is synced', 'fsyncSync', 3],
  ['the old file gets its second name', 'linkSync', 1],
])('a disk that is full when %s is a known refusal, and the file is as it was', async (_when, call, nth) => {
  const path = join(folder, 'pg_hba.conf');
  writeFileSync(path, 'before');
  const child = nodeChild(
    `import { install } from ${JSON.stringify(sourceUrl('libs/effects/src/rule-file/install.ts'))};
     import { sha256 } from ${JSON.stringify(sourceUrl('libs/engines/src/index.ts'))};
     const rules = { engineId: 'e', generation: 1, profiles: [] };
     const result = install(${JSON.stringify(path)}, 'before', { rules, after: 'after', before: sha256('before') });
     console.log(JSON.stringify(result));`,
    { preload: fullFrom(call, nth) },
  );
  expect(await child.ended).toMatchObject({ errors: '' });
  expect(JSON.parse(child.lines[0] ?? '')).toMatchObject({ outcome: 'refused', reason: { code: 'disk_full' } });
  expect(readFileSync(path, 'utf8')).toBe('before');
  expect(readdirSync(folder).filter((name) => !name.startsWith('pg_hba.conf'))).toEqual([]);
});
