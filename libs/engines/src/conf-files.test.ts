import {
  appendFileSync,
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ensureFolder, placeConfFile, readIfThere, replaceConfFile } from './conf-files.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'conf-'));
  path = join(folder, 'pg_hba.conf');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a file that the engine reads', () => {
  test('is readable by the group of its folder whatever the umask, and leaves nothing beside it', () => {
    const before = process.umask(0o077);
    try {
      expect(placeConfFile(path, 'one\n')).toBe(true);
    } finally {
      process.umask(before);
    }
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(statSync(path).gid).toBe(statSync(folder).gid);
    expect(readdirSync(folder)).toEqual(['pg_hba.conf']);
  });

  test('B044: is not written again when it has its content', () => {
    placeConfFile(path, 'one\n');
    const before = statSync(path);
    expect(placeConfFile(path, 'one\n')).toBe(false);
    expect(statSync(path).ino).toBe(before.ino);
    expect(placeConfFile(path, 'two\n')).toBe(true);
    expect(readIfThere(path)).toBe('two\n');
  });

  test('that is absent reads as absent, and one that cannot be read is an error', () => {
    expect(readIfThere(path)).toBeUndefined();
    expect(() => readIfThere(folder)).toThrow('EISDIR');
  });
});

describe('compare and swap', () => {
  test('replaces what was compared', () => {
    writeFileSync(path, 'before\n');
    expect(replaceConfFile(path, 'before\n', 'after\n')).toEqual({ did: 'replaced' });
    expect(readFileSync(path, 'utf8')).toBe('after\n');
    expect(readdirSync(folder)).toEqual(['pg_hba.conf']);
  });

  test('puts back what somebody wrote after the comparison, and says what it was', () => {
    writeFileSync(path, 'before\n');
    appendFileSync(path, 'an editor was quicker\n');
    const edited = 'before\nan editor was quicker\n';
    expect(replaceConfFile(path, 'before\n', 'after\n')).toEqual({ did: 'put back', found: edited });
    expect(readFileSync(path, 'utf8')).toBe(edited);
    expect(readdirSync(folder)).toEqual(['pg_hba.conf']);
  });
});

describe('a folder that the engine sees', () => {
  test('gets exactly its mode, also when it was there with another', () => {
    const conf = join(folder, 'a', 'conf');
    ensureFolder(conf, 0o2770);
    expect(statSync(conf).mode & 0o7777).toBe(0o2770);
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o700);
    chmodSync(conf, 0o777);
    ensureFolder(conf, 0o750);
    expect(statSync(conf).mode & 0o7777).toBe(0o750);
  });

  test('is refused when it is a link or a file', () => {
    symlinkSync(tmpdir(), join(folder, 'link'));
    expect(() => ensureFolder(join(folder, 'link'), 0o750)).toThrow('is not a folder');
    writeFileSync(join(folder, 'file'), '');
    expect(() => ensureFolder(join(folder, 'file'), 0o750)).toThrow('EEXIST');
  });
});
