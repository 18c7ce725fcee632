import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECIPES, provideLocalImage } from './image-recipes.mjs';
import { progress } from './progress.mjs';

test('an image that the cache holds is loaded, and nothing is said of building', async () => {
  /** @type {string[]} */
  const said = [];
  /** @type {string[]} */
  const asked = [];
  const docker = /** @type {import('./docker-cli.mjs').Docker} */ (
    /** @type {unknown} */ ({
      try: async (/** @type {string[]} */ args) => {
        asked.push(args[0] ?? '');
        return { code: args[0] === 'load' ? 0 : 1, stdout: '', stderr: '' };
      },
    })
  );
  const shown = progress((line) => said.push(line));
  const image = await provideLocalImage(docker, RECIPES.postgres, '/nowhere', shown);
  assert.equal(image, RECIPES.postgres.image);
  assert.deepEqual(asked, ['image', 'load']);
  assert.match(said.join('\n'), /✓ image/);
  assert.doesNotMatch(said.join('\n'), /[Bb]uilding/);
});
