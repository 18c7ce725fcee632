/**
 * A real engine, and environments on it that are made and removed by the plan and the acts, with nothing around them: no
 * catalog, no worker. What the catalog would settle between two effects is settled here.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import pg from 'pg';
import type { ActContext, ActResult, EffectSecrets, EnginePlace } from '#effects';
import type { EnvironmentNames, JsonObject, Tier } from '#kernel';
import { environmentNames, TIERS } from '#kernel';
import { connectAdmin, FreshConnections, scramVerifier } from '#postgres';
import type { EffectKind, EffectRecord, EffectSpecs, EnvironmentSubject, Identities, Step } from '#protocol';
import { effectTraits, identitiesAfter, nextStep } from '#protocol';
import { PostgresProxy } from '#testing';
import type { EngineWorld } from './engine-world.ts';
import { engineWorld, removeWorlds } from './engine-world.ts';

export const CONTROL = 'surefoot_control';

export interface Environment {
  readonly id: string;
  readonly names: EnvironmentNames;
  readonly passwords: Readonly<Record<Tier, string>>;
  readonly secrets: EffectSecrets;
  identities: Identities;
}

/** How an operation was left, with each of its effects. */
export interface Ended {
  readonly step: Exclude<Step, { do: 'effect' }>;
  readonly effects: readonly EffectRecord[];
  /** `kind outcome`, or `kind code` where it was refused. */
  readonly done: readonly string[];
}

interface More {
  readonly token?: string;
  readonly claimNumber?: number;
  readonly deadlineMs?: number;
}

export class EffectsWorld {
  readonly engine: EngineWorld;
  /** Between the acts and the engine, while `throughProxy` is asked for. */
  readonly proxy: PostgresProxy;
  readonly #proxyFolder: string;
  readonly #clients: pg.Client[] = [];
  readonly #connections = new FreshConnections({ statementTimeoutMs: 20_000, applicationName: 'surefoot test' });

  private constructor(engine: EngineWorld, proxy: PostgresProxy, proxyFolder: string) {
    this.engine = engine;
    this.proxy = proxy;
    this.#proxyFolder = proxyFolder;
  }

  static async make(more: { readonly pool?: string } = {}): Promise<EffectsWorld> {
    const engine = await engineWorld(more);
    await engine.create();
    const proxyFolder = mkdtempSync('/var/tmp/proxy-');
    return new EffectsWorld(engine, await PostgresProxy.inFolder(proxyFolder, engine.place.socketFolder), proxyFolder);
  }

  async remove(): Promise<void> {
    await this.endClients();
    await this.proxy.close();
    rmSync(this.#proxyFolder, { recursive: true });
    await removeWorlds();
  }

  /** Ends the connections that tests have opened here. */
  async endClients(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.end().catch(() => undefined)));
  }

  async environment(name: string, identities: Identities = {}): Promise<Environment> {
    const id = randomUUID();
    const password = (): string => randomBytes(18).toString('base64url');
    const passwords = { migrate: password(), app: password(), readonly: password() };
    const verifiers = {
      migrate: await scramVerifier(passwords.migrate),
      app: await scramVerifier(passwords.app),
      readonly: await scramVerifier(passwords.readonly),
    };
    return { id, names: environmentNames(name, id), passwords, secrets: { verifiers, passwords }, identities };
  }

  /** One act, straight at the engine. */
  act<K extends EffectKind>(env: Environment, kind: K, spec: EffectSpecs[K], more: More = {}): Promise<ActResult> {
    return this.engine.perform(kind, spec, this.#context(env, more));
  }

  /** One act, whose connections go through the proxy. */
  actThroughProxy<K extends EffectKind>(
    env: Environment,
    kind: K,
    spec: EffectSpecs[K],
    more: More = {},
  ): Promise<ActResult> {
    return this.engine.perform(kind, spec, { ...this.#context(env, more), engine: this.placeBehindProxy });
  }

  get placeBehindProxy(): EnginePlace {
    return { ...this.engine.place, socketFolder: this.#proxyFolder };
  }

  #context(
    env: Environment,
    { token = randomUUID(), claimNumber = 1, deadlineMs = 15_000 }: More,
  ): Partial<ActContext> {
    return {
      inHand: { token, effectId: randomUUID(), attempt: 1, claimNumber, resource: `environment ${env.id}` },
      secrets: env.secrets,
      connections: this.#connections,
      deadlineMs,
    };
  }

  /** What the plan asks for next of a kind, as if everything before it had been applied. */
  spec<
    K extends
      | 'roles'
      | 'database'
      | 'interior'
      | 'publish-database'
      | 'rules'
      | 'retire-database'
      | 'drop-database'
      | 'drop-roles',
  >(env: Environment, kind: K): EffectSpecs[K] {
    const { id: environmentId, names, identities } = env;
    const { databaseOid = 0, roleOids = { owner: 0, door: 0, migrate: 0, app: 0, readonly: 0 } } = identities;
    const specs = {
      roles: { environmentId, names, connectionLimit: 20 },
      database: { environmentId },
      interior: { environmentId, databaseOid, names, extensions: [] },
      'publish-database': { environmentId, databaseOid, names, connectionLimit: 20 },
      rules: { environmentId, names, profiles: ['local'] },
      'retire-database': { environmentId, databaseOid, names, profiles: ['local'] },
      'drop-database': { environmentId, databaseOid },
      'drop-roles': { environmentId, roleOids },
    };
    return (specs as Partial<EffectSpecs>)[kind]!;
  }

  /** Follows the plan to its end, or up to (not including) an effect. */
  async run(
    kind: 'environment.create' | 'environment.delete',
    env: Environment,
    options: { readonly until?: EffectKind; readonly extensions?: readonly string[] } = {},
  ): Promise<Ended> {
    let effects: readonly EffectRecord[] = [];
    for (let round = 0; round < 20; round += 1) {
      const subject: EnvironmentSubject = {
        type: 'environment',
        id: env.id,
        names: env.names,
        extensions: options.extensions ?? [],
        connectionLimit: 20,
        profile: 'local',
        refusedDatabases: ['postgres', 'template1', CONTROL],
        identities: env.identities,
        services: [],
        place: {
          networkPool: '10.213.0.0/16',
          engineContainerId: this.engine.identities.containerId,
          published: undefined,
        },
      };
      const step = nextStep(kind, { subject, effects, cancelRequested: false, superseded: false });
      if (step.do !== 'effect') return { step, effects, done: effects.map(told) };
      if (step.effect.kind === options.until)
        return { step: { do: 'finish', state: 'cancelled' }, effects, done: effects.map(told) };
      const result = await this.act(env, step.effect.kind, step.effect.spec);
      effects = this.#settle(env, effects, step.effect.kind, result);
    }
    throw new Error(`the plan does not end: ${effects.map(told).join(', ')}`);
  }

  #settle(
    env: Environment,
    effects: readonly EffectRecord[],
    kind: EffectKind,
    result: ActResult,
  ): readonly EffectRecord[] {
    if (result.outcome === 'unknown') throw new Error(`${kind}: ${JSON.stringify(result)}`);
    if (result.outcome === 'refused')
      return [...effects, { kind, outcome: 'refused', facts: result.facts ?? {}, reason: result.reason }];
    env.identities = identitiesAfter(env.identities, kind, result.facts);
    const undone = effectTraits(kind).undoes ?? [];
    const before = effects.map((record) =>
      undone.includes(record.kind) && record.outcome === 'applied' ? { ...record, outcome: 'undone' as const } : record,
    );
    return [...before, { kind, outcome: 'applied', facts: result.facts }];
  }

  /** @throws unless it succeeds */
  async create(env: Environment, options: { readonly extensions?: readonly string[] } = {}): Promise<Environment> {
    const { step, done } = await this.run('environment.create', env, options);
    if (step.do !== 'finish' || step.state !== 'succeeded') throw new Error(`create: ${done.join(', ')}`);
    return env;
  }

  /** A connection as the engine's administrator, past the proxy. */
  async admin(database = CONTROL): Promise<pg.Client> {
    const client = await connectAdmin(this.engine.place, database, { statementTimeoutMs: 20_000 });
    this.#clients.push(client);
    return client;
  }

  /** One statement as the administrator, on a connection of its own. */
  async sql<Row extends object>(
    statement: string,
    values: readonly unknown[] = [],
    database = CONTROL,
  ): Promise<Row[]> {
    const client = await connectAdmin(this.engine.place, database, { statementTimeoutMs: 20_000 });
    try {
      return (await client.query<Row>(statement, [...values])).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** As a user of the environment would log in: over TCP and TLS. */
  async login(env: Environment, tier: Tier, database: string = env.names.database): Promise<pg.Client> {
    const client = new pg.Client({
      host: 'localhost',
      port: this.engine.place.port,
      user: env.names.logins[tier],
      password: env.passwords[tier],
      database,
      ssl: { ca: readFileSync(this.engine.place.caFile, 'utf8'), servername: 'localhost' },
      connectionTimeoutMillis: 10_000,
      query_timeout: 10_000,
    });
    client.on('error', () => undefined);
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  async tokenRow(token: string, database = CONTROL): Promise<Record<string, unknown> | undefined> {
    return (
      await this.sql<Record<string, unknown>>('select * from surefoot.tokens where token = $1', [token], database)
    )[0];
  }

  /** Facts of the ledger row of a token; undefined when there is none. */
  async ledger(token: string, database = CONTROL): Promise<JsonObject | undefined> {
    const rows = await this.sql<{ facts: JsonObject }>(
      'select facts from surefoot.ledger where token = $1',
      [token],
      database,
    );
    return rows[0]?.facts;
  }

  /** Databases and roles that are ours by their name, and were not there in an engine that holds no environment. */
  async leftovers(env: Environment): Promise<readonly string[]> {
    const rows = await this.sql<{ name: string }>(
      `select datname::text as name from pg_database where oid = $1 or datname = $2
       union all select rolname::text from pg_roles where rolname = any ($3)`,
      [
        env.identities.databaseOid ?? 0,
        env.names.database,
        [env.names.owner, env.names.door, ...TIERS.map((tier) => env.names.logins[tier])],
      ],
    );
    return rows.map(({ name }) => name);
  }

  /** What the container has logged: the server's log. */
  log(): Promise<string> {
    return this.engine.log();
  }
}

function told(record: EffectRecord): string {
  return `${record.kind} ${record.outcome === 'refused' ? (record.reason?.code ?? 'refused') : record.outcome}`;
}

/** The session lock's number for an environment, said once more and apart from the program: a UUID's first 64 bits, signed. */
export function sessionLock(environmentId: string): string {
  const high = Buffer.from(environmentId.replaceAll('-', ''), 'hex').subarray(0, 8);
  return high.readBigInt64BE().toString();
}

export function facts(result: ActResult): JsonObject {
  if (result.outcome !== 'applied') throw new Error(JSON.stringify(result));
  return result.facts;
}
