import type { Mark } from '#kernel';
import { parseMark } from '#kernel';
import type { Client } from '#postgres';

export interface FoundDatabase {
  readonly oid: number;
  readonly name: string;
  /** A drop was interrupted (`datconnlimit` -2): nobody can connect, and only a drop is possible (FIELD-CASES B021). */
  readonly halfDropped: boolean;
  readonly allowsConnections: boolean;
  readonly mark: Mark | undefined;
}

const COLUMNS = /* sql */ `
  select oid, datname as name, datconnlimit = -2 as "halfDropped", datallowconn as "allowsConnections",
         shobj_description(oid, 'pg_database') as comment
    from pg_database`;

/** The database with a recorded OID, under whatever name it has now. */
export async function findDatabase(client: Client, oid: number): Promise<FoundDatabase | undefined> {
  return first(client, `${COLUMNS} where oid = $1`, oid);
}

export async function findDatabaseByName(client: Client, name: string): Promise<FoundDatabase | undefined> {
  return first(client, `${COLUMNS} where datname = $1`, name);
}

async function first(client: Client, statement: string, key: string | number): Promise<FoundDatabase | undefined> {
  const { rows } = await client.query<Omit<FoundDatabase, 'mark'> & { comment: string | null }>(statement, [key]);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { comment, oid, ...rest } = row;
  return { ...rest, oid: Number(oid), mark: parseMark(comment) };
}
