// Habits that no linter knows: each is a pattern that must not occur in a committed text, with the reason.

import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const skippedFolders = new Set(['node_modules', 'dist', '.git', '.cache', 'generated']);
const texts = /(\.(ts|mjs|cjs|js|json|md|ya?ml|sql|sh|pml|service|conf)|Dockerfile[^/]*|\.npmrc|\/bin\/[^/.]+)$/;

/** Written in pieces, so that this file does not break its own rules. */
const habits = [
  {
    pattern: new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`),
    files: texts,
    reason: 'an open end belongs into the tracker, where somebody looks',
  },
  {
    pattern: /eslint-disable(?!.* -- \S)|@ts-(ignore|expect-error)\s*$|prettier-ignore\s*(-->)?\s*$/,
    files: /\.(ts|mjs|js)$/,
    reason: 'an exception says why (`-- reason`)',
  },
  {
    pattern: new RegExp('@ts-' + 'nocheck'),
    files: /\.(ts|mjs|js)$/,
    reason: 'a whole file without types hides more than it was meant to',
  },
  {
    pattern: new RegExp(`"resolved": *"(?!git)|registry\\.npm${'js'}\\.org|deb\\.deb${'ian'}\\.org`),
    files: /(^|\/)(package-lock\.json|\.npmrc)$|^(deploy|apps|libs|test)\//,
    reason: 'the address of a registry or an archive is the machine’s affair',
  },
  {
    pattern: /^ {4}"(?!node"|npm")[^"]+": "[\^~*>]/,
    files: /^package\.json$/,
    reason: 'versions are pinned: a build is the same tomorrow',
  },
  {
    pattern: /from 'node:test'/,
    files: /\.ts$/,
    reason: 'tests of TypeScript run in Jest; Node’s own runner is for the set-up scripts',
  },
];

/**
 * @param {string} root
 * @returns {string[]} one line per violation: `file:line reason`
 */
export function brokenHabits(root) {
  return [...files(root)]
    .map((path) => relative(root, path))
    .filter((path) => habits.some((habit) => habit.files.test(path)))
    .flatMap((path) => {
      const lines = readFileSync(join(root, path), 'utf8').split('\n');
      const applicable = habits.filter((habit) => habit.files.test(path));
      return lines.flatMap((line, index) =>
        applicable
          .filter((habit) => habit.pattern.test(line))
          .map((habit) => `${path}:${index + 1} ${habit.reason}: ${line.trim().slice(0, 80)}`),
      );
    });
}

/**
 * @param {string} folder
 * @returns {Iterable<string>}
 */
function* files(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !skippedFolders.has(entry.name) && !entry.name.startsWith('.surefoot'))
      yield* files(path);
    else if (entry.isFile()) yield path;
  }
}
