/**
 * What the same work costs with no records at all (DESIGN §13): this one process, its connection to the engine open, and
 * nothing but the statements that make or remove an environment and the logins that prove it. No token, ledger, receipt,
 * witness, catalog or queue; no look at what is there before, no object ids, no guard against a second try.
 *
 * The statements are those of libs/effects, written down a second time on purpose: this is what a careful person's script
 * would be. `same-result.ts` refuses to give a ratio when the two no longer make the same thing.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { EnvironmentNames, Tier } from '#kernel';
import {
  attemptDatabaseName,
  CONNECTION_LIMIT_DEFAULT,
  environmentNames,
  markText,
  profileRole,
  quoteIdentifier as quoted,
  quoteLiteral,
  TIERS,
  tombstoneDatabaseName,
} from '#kernel';
import type { Client } from '#postgres';
import { connectAdmin, connectLogin, errorCode, scramVerifier } from '#postgres';
import type { EngineInUse } from './installation.ts';

export interface BaselineEnvironment {
  readonly id: string;
  readonly names: EnvironmentNames;
}

/** Milliseconds, by the name of the effect that does the same. */
export type Steps = ReadonlyMap<string, number>;

const CONTROL_DATABASE = 'surefoot_control';
const PROFILE = 'local';
const ADMIN = { statementTimeoutMs: 60_000, applicationName: 'surefoot bench' };

export class Baseline {
  readonly #engine: EngineInUse;
  readonly #control: Client;
  readonly #ca: string;
  /** Not the installation's own: what this makes must never look like Surefoot's. */
  readonly #installation = randomUUID();

  private constructor(engine: EngineInUse, control: Client, ca: string) {
    this.#engine = engine;
    this.#control = control;
    this.#ca = ca;
  }

  static async open(engine: EngineInUse): Promise<Baseline> {
    const control = await connectAdmin(engine, CONTROL_DATABASE, ADMIN);
    return new Baseline(engine, control, await readFile(engine.caFile, 'utf8'));
  }

  async close(): Promise<void> {
    await this.#control.end();
  }

  /** What was created so far is on disk, so that no later statement pays for it. */
  async settle(): Promise<void> {
    await this.#control.query('checkpoint');
  }

  /** @param refusedDatabases what Surefoot's own probe finds closed at this moment */
  async create(name: string, refusedDatabases: readonly string[]): Promise<[BaselineEnvironment, Steps]> {
    const id = randomUUID();
    const names = environmentNames(name, id);
    const { database, door } = names;
    const owner = quoted(names.owner);
    const migrate = quoted(names.logins.migrate);
    const app = quoted(names.logins.app);
    const readonly = quoted(names.logins.readonly);
    const mark = quoteLiteral(
      markText({ installation: this.#installation, kind: 'environment', id, token: randomUUID() }),
    );
    const steps = new StopWatch();

    const passwords = byTier(() => randomBytes(24).toString('base64url'));
    const [migrateVerifier, appVerifier, readonlyVerifier] = await Promise.all(
      TIERS.map((tier) => scramVerifier(passwords[tier])),
    );
    steps.lap('verifiers');

    const plain = 'nosuperuser nocreatedb nocreaterole noreplication nobypassrls inherit';
    const login = `login ${plain} connection limit ${CONNECTION_LIMIT_DEFAULT} password`;
    await this.#control.query(`
      create role ${owner} nologin ${plain};
      create role ${quoted(door)} nologin ${plain};
      create role ${migrate} ${login} ${quoteLiteral(migrateVerifier ?? '')} in role ${owner}, ${quoted(door)};
      create role ${app} ${login} ${quoteLiteral(appVerifier ?? '')} in role ${quoted(door)};
      create role ${readonly} ${login} ${quoteLiteral(readonlyVerifier ?? '')} in role ${quoted(door)};
      alter role ${migrate} set role to ${quoteLiteral(names.owner)};
      alter role ${readonly} set default_transaction_read_only to on;
      comment on role ${owner} is ${mark};
      comment on role ${quoted(door)} is ${mark};
      comment on role ${migrate} is ${mark};
      comment on role ${app} is ${mark};
      comment on role ${readonly} is ${mark};`);
    steps.lap('roles');

    const building = attemptDatabaseName(randomUUID());
    await this.#control.query(`create database ${quoted(building)} with template surefoot_template connection limit 0`);
    steps.lap('database');

    const inside = await connectAdmin(this.#engine, building, ADMIN);
    const defaults = (maker: string): string => `
      alter default privileges for role ${maker} grant usage on schemas to ${app}, ${readonly};
      alter default privileges for role ${maker} grant select, insert, update, delete on tables to ${app};
      alter default privileges for role ${maker} grant usage, select, update on sequences to ${app};
      alter default privileges for role ${maker} grant select on tables to ${readonly};
      alter default privileges for role ${maker} grant select on sequences to ${readonly};`;
    await inside.query(`
      revoke all on schema public from public;
      alter schema public owner to ${owner};
      grant usage on schema public to ${app}, ${readonly};
      ${defaults(owner)}
      ${defaults(migrate)}`);
    await inside.end();
    steps.lap('interior');

    await this.#control.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [building]);
    await this.#control.query(`
      alter database ${quoted(building)} rename to ${quoted(database)};
      revoke all on database ${quoted(database)} from public;
      grant connect, temporary on database ${quoted(database)} to ${migrate}, ${app}, ${readonly};
      grant create on database ${quoted(database)} to ${owner};
      alter database ${quoted(database)} connection limit ${CONNECTION_LIMIT_DEFAULT};
      comment on database ${quoted(database)} is ${mark};`);
    steps.lap('publish-database');

    await this.#control.query(`grant ${quoted(profileRole(PROFILE))} to ${quoted(door)}`);
    steps.lap('rules');

    await Promise.all(
      TIERS.flatMap((tier) => [
        this.#expectIn(names.logins[tier], passwords[tier], database, tier === 'migrate'),
        ...refusedDatabases.map((closed) => this.#expectKeptOut(names.logins[tier], passwords[tier], closed)),
      ]),
    );
    steps.lap('probe');
    return [{ id, names }, steps.laps];
  }

  async delete({ names }: BaselineEnvironment): Promise<Steps> {
    const { database, door, owner } = names;
    const logins = TIERS.map((tier) => names.logins[tier]);
    const roles = [owner, door, ...logins];
    const tombstone = quoted(tombstoneDatabaseName(randomUUID()));
    const steps = new StopWatch();

    await this.#control.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 or usename = any ($2::name[])`,
      [database, logins],
    );
    await this.#control.query(`
      ${logins.map((login) => `alter role ${quoted(login)} nologin;`).join('\n')}
      revoke ${quoted(profileRole(PROFILE))} from ${quoted(door)};
      alter database ${quoted(database)} connection limit 0;
      revoke all on database ${quoted(database)} from public, ${roles.map(quoted).join(', ')};
      alter database ${quoted(database)} rename to ${tombstone};`);
    steps.lap('retire-database');

    await this.#control.query(`drop database ${tombstone} with (force)`);
    steps.lap('drop-database');

    await this.#control.query(`drop role ${roles.map(quoted).join(', ')}`);
    steps.lap('drop-roles');
    return steps.laps;
  }

  async #expectIn(user: string, password: string, database: string, creates: boolean): Promise<void> {
    const client = await connectLogin({ port: this.#engine.port, ca: this.#ca, user, password, database });
    const { rows } = await client.query<{ reached: string; creates: boolean; uses: boolean }>(`
      select current_database() as reached, has_schema_privilege('public', 'CREATE') as creates,
             has_schema_privilege('public', 'USAGE') as uses`);
    await client.end();
    const [found] = rows;
    if (found?.reached !== database || !found.uses || found.creates !== creates)
      throw new Error(`${user} does not have in ${database} what it should have`);
  }

  async #expectKeptOut(user: string, password: string, database: string): Promise<void> {
    try {
      const client = await connectLogin({ port: this.#engine.port, ca: this.#ca, user, password, database });
      await client.end();
    } catch (error) {
      if (['28000', '42501'].includes(errorCode(error) ?? '')) return;
      throw error;
    }
    throw new Error(`${user} can connect to ${database}`);
  }
}

function byTier<T>(make: () => T): Record<Tier, T> {
  return { migrate: make(), app: make(), readonly: make() };
}

class StopWatch {
  readonly laps = new Map<string, number>();
  #last = performance.now();

  lap(name: string): void {
    const now = performance.now();
    this.laps.set(name, now - this.#last);
    this.#last = now;
  }
}
