/** What private registries ask for when an image is pulled. A password is written here, and read by the worker alone. */
import type { Catalog, Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';

export interface Registry {
  readonly server: string;
  readonly username: string;
  readonly created_at: Date;
}

interface Requested {
  readonly server: string;
  readonly requestedBy: { readonly name: string };
}

/** By server. */
export async function listRegistries(catalog: Catalog): Promise<readonly Registry[]> {
  return catalog.query<Registry>(
    /* sql */ `select server, username, created_at from registries order by server collate "C"`,
  );
}

/** What was known of the server is replaced. Saying the same twice changes nothing more, so it may be repeated. */
export async function setRegistry(
  tx: Tx,
  set: Requested & { readonly username: string; readonly passwordSealed: Buffer },
): Promise<Registry & { readonly made: boolean }> {
  const { server, username, passwordSealed, requestedBy } = set;
  // A row that was inserted has never been locked or changed by anybody (PostgreSQL manual, "System Columns").
  const [row] = await tx.query<Registry & { readonly made: boolean }>(
    /* sql */ `insert into registries (server, username, password_sealed) values ($1, $2, $3)
                on conflict (server) do update
                set username = excluded.username, password_sealed = excluded.password_sealed, created_at = now()
                returning server, username, created_at, xmax = 0 as made`,
    [server, username, passwordSealed],
  );
  if (row === undefined) throw new TypeError('an insert that updates in a conflict returns its row');
  await writeAudit(tx, `key ${requestedBy.name}`, 'registry.set', server, { username });
  return row;
}

/** @returns undefined when there was none */
export async function removeRegistry(tx: Tx, { server, requestedBy }: Requested): Promise<Registry | undefined> {
  const [row] = await tx.query<Registry>(
    /* sql */ `delete from registries where server = $1 returning server, username, created_at`,
    [server],
  );
  if (row !== undefined) await writeAudit(tx, `key ${requestedBy.name}`, 'registry.remove', server, {});
  return row;
}
