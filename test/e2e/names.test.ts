import { expect, test } from '@jest/globals';
import { InstallationUnderTest } from '#testing';

const installation = new InstallationUnderTest();
const run = Date.now().toString(36);

/** Each made, used by every tier, deleted, and made again under the same name. */
const WORKING = [
  ['B001: a hyphen', `my-app-${run}`],
  ['B006: capitals', `AppDb${run}`],
  ['B011: the SQL keyword asc', 'asc'],
  ['B011: the SQL keyword user', 'user'],
  ['B011: the SQL keyword select', 'select'],
  ['B011: the SQL keyword order', 'order'],
  ['the words of the rule file', 'samerole'],
  ['a double quote', `a"b${run}`],
  ['a single quote', `o'clock${run}`],
  ['a backslash', `back\\slash${run}`],
  ['a dollar quote', `$$${run}`],
  ['a percent sign and a question mark', `50%?${run}`],
  ['spaces around and within', ` a b ${run} `],
  ['commas, hashes and an at sign', `a,b#c@d${run}`],
  ['non-ASCII letters', `größe-日本-${run}`],
  ['characters outside the basic plane', `rocket🚀${run}`],
  ['B009: exactly 45 bytes of three-byte characters', '日'.repeat(15)],
] as const;

test.each(WORKING)(
  'a name with %s works in create, login, listing and delete, and is free again',
  async (_, name) => {
    for (let round = 0; round < 2; round += 1) {
      const environment = await installation.ready(name);
      expect(environment.name).toBe(name);
      const [migrate, app, readonly] = await Promise.all(
        (await installation.logins(environment.id)).map((login) => installation.connect(login)),
      );
      await migrate!.query('create table t (n integer)');
      await app!.query('insert into t values (1)');
      expect((await readonly!.query('select n from t')).rows).toEqual([{ n: 1 }]);
      await expect(readonly!.query('insert into t values (2)')).rejects.toThrow(/read-only/);
      await Promise.all([migrate!.end(), app!.end(), readonly!.end()]);
      const listed = await installation.request<{ items: { id: string }[] }>(
        'GET',
        `/v1/projects/default/environments?name=${encodeURIComponent(name)}`,
      );
      expect(listed.body.items.map(({ id }) => id)).toEqual([environment.id]);
      expect(await installation.ended((await installation.remove(environment.id)).id)).toMatchObject({
        state: 'succeeded',
      });
    }
  },
  60_000,
);

const REFUSED = [
  ['an empty one', ''],
  ['a slash', 'a/b'],
  ['a line break', 'a\nb'],
  ['a NUL', 'a\0b'],
  ['a line separator', 'a\u2028b'],
  ['the prefix pg_', 'pg_mine'],
  ['B009: 46 bytes', `${'日'.repeat(15)}x`],
] as const;

test.each(REFUSED)('a name with %s is one 400 that names the rule, and nothing is made', async (_, name) => {
  const answer = await installation.request<{ code: string; errors: { field: string; message: string }[] }>(
    'POST',
    '/v1/projects/default/environments',
    { body: { name } },
  );
  expect(answer.status).toBe(400);
  expect(answer.body.errors.map(({ field }) => field)).toEqual(['name']);
  expect(answer.body.errors[0]!.message.length).toBeGreaterThan(10);
});
