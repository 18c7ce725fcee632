import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DataSource } from 'typeorm';
import { ENTITIES, migrateCatalog } from '#catalog';
import { ownDatabase, type OwnDatabase } from './catalog-server.ts';

let database: OwnDatabase;
beforeAll(async () => {
  database = await ownDatabase();
  await migrateCatalog(database.url);
});
afterAll(async () => database.drop());

/** What TypeORM would change to make the tables like its entities; nothing is changed. */
async function differences(): Promise<readonly string[]> {
  const source = new DataSource({
    type: 'postgres',
    url: database.url,
    entities: [...ENTITIES],
    installExtensions: false,
  });
  await source.initialize();
  try {
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    return upQueries.map((query) => query.query);
  } finally {
    await source.destroy();
  }
}

test('TypeORM finds nothing to change: entities and migrations describe the same tables', async () => {
  expect(await differences()).toEqual([]);
});

test('every table of the catalog has an entity', async () => {
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_name <> 'migrations' order by 1`,
  );
  expect(tables).toHaveLength(ENTITIES.length);
});

test.each([
  ['a column that no entity has', 'alter table hosts add column other text', 'DROP COLUMN "other"'],
  ['another nullability', 'alter table cases alter column reason drop not null', '"reason" SET NOT NULL'],
  ['another type', 'alter table tokens alter column resource type varchar', '"tokens"'],
  ['an index that is gone', 'drop index operations_one_delete', 'CREATE UNIQUE INDEX "operations_one_delete"'],
  ['a foreign key that is gone', 'alter table jobs drop constraint jobs_operation_id_fkey', '"jobs_operation_id_fkey"'],
])('the comparison would see %s', async (_what, change, expected) => {
  await database.query(change);
  expect((await differences()).join('\n')).toContain(expected);
});
