import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SignsOfLife } from './signs-of-life.ts';

let folder: string;
const file = (name: string): string => join(folder, `reconciler.${name}`);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signs-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

test('what it wrote it removes, and nothing else is left', () => {
  const signs = new SignsOfLife(folder);
  signs.ready();
  signs.ended({ pass: 'relay', endedAt: new Date(), outcome: 'done' });
  expect(readdirSync(folder).sort()).toEqual(['reconciler.passes', 'reconciler.ready']);
  signs.remove();
  expect(readdirSync(folder)).toEqual([]);
});

test('what a successor wrote stays', () => {
  const signs = new SignsOfLife(folder);
  signs.ready();
  writeFileSync(file('ready'), JSON.stringify({ pid: process.pid + 1 }));
  signs.remove();
  expect(existsSync(file('ready'))).toBe(true);
});

test('ends are written now and then, a change of their outcome at once', () => {
  const signs = new SignsOfLife(folder);
  const outcomes = (): unknown => JSON.parse(readFileSync(file('passes'), 'utf8'));
  const at = (milliseconds: number): Date => new Date(1_800_000_000_000 + milliseconds);
  signs.ended({ pass: 'relay', endedAt: at(0), outcome: 'done' });
  signs.ended({ pass: 'relay', endedAt: at(1_000), outcome: 'done' });
  expect(outcomes()).toMatchObject({ passes: [{ endedAt: at(0).toISOString() }] });
  signs.ended({ pass: 'relay', endedAt: at(1_100), outcome: 'failed' });
  expect(outcomes()).toMatchObject({ passes: [{ endedAt: at(1_100).toISOString(), outcome: 'failed' }] });
  signs.ended({ pass: 'relay', endedAt: at(3_200), outcome: 'failed' });
  expect(outcomes()).toMatchObject({ passes: [{ endedAt: at(3_200).toISOString() }] });
});
