/** A catalog of a test's own, with a host, an engine and operations that are queued on it. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Claim, EffectToRecord, Settlement } from '#catalog';
import { Catalog, claimJob, connectionSettings, migrateCatalog, recordEffect } from '#catalog';
import { environmentNames } from '#kernel';
import type { EffectKind, OperationKind } from '#protocol';
import { type OwnDatabase, ownDatabase } from './catalog-server.ts';

export interface Queued {
  readonly operationId: string;
  readonly jobId: string;
  readonly environmentId: string;
}

export interface Row {
  readonly [column: string]: unknown;
}

export class CatalogWorld {
  readonly database: OwnDatabase;
  readonly catalog: Catalog;
  readonly hostId = 'local';
  readonly engineId = randomUUID();
  readonly projectId = randomUUID();
  readonly keyId = randomUUID();
  #environments = 0;

  private constructor(database: OwnDatabase, catalog: Catalog) {
    this.database = database;
    this.catalog = catalog;
  }

  static async make(): Promise<CatalogWorld> {
    const database = await ownDatabase();
    await migrateCatalog(database.url);
    const world = new CatalogWorld(
      database,
      Catalog.open({ url: database.url, applicationName: 'test', maxConnections: 12 }),
    );
    await world.addHost(world.hostId);
    await database.query(
      `insert into engines (id, name, host_id, state, image, port, network_pool, identity)
       values ($1, 'main', $2, 'ready', 'postgres:17', 15432, '10.1.0.0/16', $3)`,
      [world.engineId, world.hostId, randomUUID()],
    );
    await database.query(`insert into projects (id, name) values ($1, 'default')`, [world.projectId]);
    await database.query(`insert into api_keys (id, name, key_hash, role) values ($1, 'admin', '\\x00', 'admin')`, [
      world.keyId,
    ]);
    return world;
  }

  async remove(): Promise<void> {
    await this.catalog.close();
    await this.database.drop();
  }

  async addHost(hostId: string): Promise<void> {
    await this.database.query('insert into hosts (id, identity) values ($1, $2)', [hostId, randomUUID()]);
  }

  /** A pool with the program's own settings, to this database or through a relay in front of it. */
  pool(url: string = this.database.url): pg.Pool {
    return new pg.Pool(connectionSettings({ url, applicationName: 'test', maxConnections: 3 }));
  }

  /** An operation about an environment of its own, or about the engine; as accepting it leaves it. */
  async queued(
    kind: OperationKind = 'environment.create',
    { hostId = this.hostId, environmentId }: { readonly hostId?: string; readonly environmentId?: string } = {},
  ): Promise<Queued> {
    const [operationId, jobId] = [randomUUID(), randomUUID()];
    const about = kind.startsWith('environment') ? (environmentId ?? (await this.environment())) : null;
    await this.database.query(
      `insert into operations (id, kind, host_id, project_id, environment_id, engine_id, requested_by, state)
       values ($1, $2, $3, $4, $5, $6, $7, 'queued')`,
      [operationId, kind, hostId, this.projectId, about, this.engineId, this.keyId],
    );
    await this.database.query('insert into jobs (id, operation_id, host_id, schema_version) values ($1, $2, $3, 1)', [
      jobId,
      operationId,
      hostId,
    ]);
    return { operationId, jobId, environmentId: about ?? '' };
  }

  async environment(): Promise<string> {
    const id = randomUUID();
    const name = `env-${(this.#environments += 1)}`;
    await this.database.query(
      `insert into environments (id, project_id, name, state, engine_id, profile, extensions, connection_limit, labels, database_name)
       values ($1, $2, $3, 'provisioning', $4, 'local', '{}', 20, '{}', $5)`,
      [id, this.projectId, name, this.engineId, environmentNames(name, id).database],
    );
    await this.database.query(
      `insert into logins (environment_id, tier, user_name, password_sealed, verifier_sealed)
       select $1, tier, tier, '\\x01', '\\x02' from unnest(array['migrate', 'app', 'readonly']) tier`,
      [id],
    );
    return id;
  }

  /** @throws when the job cannot be claimed now */
  async claimed(job: { readonly jobId: string }, hostId: string = this.hostId): Promise<Claim> {
    const answer = await this.catalog.transaction((tx) => claimJob(tx, job.jobId, hostId, randomUUID()));
    if (answer.answer !== 'claimed') throw new Error(JSON.stringify(answer));
    return answer.claim;
  }

  toRecord(claim: Claim, kind: EffectKind = 'roles', changes: Partial<EffectToRecord> = {}): EffectToRecord {
    return {
      effectId: randomUUID(),
      token: randomUUID(),
      operationId: claim.operationId,
      claimId: claim.claimId,
      claimNumber: claim.claimNumber,
      engineId: this.engineId,
      kind,
      spec: {},
      resource: 'engine main',
      ...changes,
    };
  }

  async recorded(claim: Claim, kind: EffectKind = 'roles'): Promise<EffectToRecord> {
    const effect = this.toRecord(claim, kind);
    const answer = await this.catalog.transaction((tx) => recordEffect(tx, effect));
    if (answer !== 'updated') throw new Error(answer);
    return effect;
  }

  settlementOf(effect: EffectToRecord, changes: Partial<Settlement> = {}): Settlement {
    return {
      effectId: effect.effectId,
      token: effect.token,
      operationId: effect.operationId,
      claimId: effect.claimId,
      outcome: 'applied',
      facts: {},
      undoes: [],
      identities: {},
      subject: { type: 'engine', id: this.engineId },
      ...changes,
    };
  }

  async operation(operationId: string): Promise<Row> {
    return this.one('select * from operations where id = $1', [operationId]);
  }

  async effect(effectId: string): Promise<Row> {
    return this.one(
      'select e.*, t.token, t.settled_at as token_settled_at from effects e left join tokens t on t.effect_id = e.id where e.id = $1',
      [effectId],
    );
  }

  async count(table: string, where = 'true', values: readonly unknown[] = []): Promise<number> {
    return Number((await this.one(`select count(*) as n from ${table} where ${where}`, values))['n']);
  }

  async one(statement: string, values: readonly unknown[] = []): Promise<Row> {
    const [row] = await this.database.query<Row>(statement, values);
    if (row === undefined) throw new Error(`no row: ${statement}`);
    return row;
  }
}
