/**
 * The guarded batch (DESIGN §5): the only way a statement of ours changes an engine.
 *
 * Order, and why: the session lock is taken in a statement of its own, outside a transaction, so that the token row is then
 * read in a snapshot made after the wait (a snapshot made before it reads a revoked token as active). The token is
 * registered, in a transaction of its own, with the exact backend that will act, and with the claim's number for the age
 * record. Then one transaction: the token row locked and active, the change, the ledger row, COMMIT.
 *
 * The connection is fresh, is used for nothing else, and is not used again after any error.
 */
import { setTimeout } from 'node:timers/promises';
import type { JsonObject, Reason } from '#kernel';
import { quoteLiteral } from '#kernel';
import type { AdminPlace, Client, FreshConnections } from '#postgres';
import { abandon, classifyEngineError, errorCode, errorSentence, isNotReadyYet } from '#postgres';

export const CONTROL_DATABASE = 'surefoot_control';

export interface Guard {
  readonly installation: string;
  readonly engine: AdminPlace & { readonly engineId: string; readonly identity: string };
  readonly connections: FreshConnections;
  readonly token: string;
  readonly effectId: string;
  readonly attempt: number;
  readonly claimNumber: number;
  readonly resource: string;
  /** What the session lock is about: an environment's or engine's UUID. */
  readonly subjectId: string;
  readonly deadlineMs: number;
}

export type GuardedResult =
  | { readonly outcome: 'applied'; readonly facts: JsonObject }
  | { readonly outcome: 'refused'; readonly reason: Reason; readonly facts?: JsonObject }
  | { readonly outcome: 'unknown'; readonly reason: Reason };

/** Thrown by a change that will not be made: nothing of the batch takes effect. */
export class Refusal extends Error {
  readonly code: string;
  readonly facts: JsonObject | undefined;
  constructor(code: string, message: string, facts?: JsonObject) {
    super(message);
    this.name = 'Refusal';
    this.code = code;
    this.facts = facts;
  }
}

/** A way in which the attempt ended with certainly no effect, and may be made again under the same token. */
class NothingDone extends Error {}

/** @returns what goes into the ledger row, and back to the caller */
export type Change = (client: Client) => Promise<JsonObject>;

/** How long to wait before a server that is not there, or a database that is in use, is tried again. */
const RETRY_PAUSE_MS = 50;

/** How long a change may wait for a lock on what a neighbour uses: the neighbour's next statement waits behind it. */
export const SHORT_LOCK_WAIT_MS = 2_000;

/** One transaction in the control database. */
export function guardedBatch(guard: Guard, kind: string, change: Change): Promise<GuardedResult> {
  return attempts(guard, async () => {
    const client = await connect(guard, CONTROL_DATABASE);
    try {
      await lockAndRegister(client, guard, 'flushed by the change');
      return await transaction(client, guard, kind, change);
    } finally {
      abandon(client);
    }
  });
}

/**
 * One statement that cannot be part of a transaction (CREATE DATABASE, DROP DATABASE): under the session lock, after the
 * check, on the same backend. It has no ledger row; what proves it is the object.
 */
export function guardedStatement(
  guard: Guard,
  statement: (client: Client) => Promise<JsonObject>,
): Promise<GuardedResult> {
  return attempts(guard, async () => {
    const client = await connect(guard, CONTROL_DATABASE);
    try {
      // What the statement finds done already writes nothing, so nothing after the registration would flush it; a server
      // that crashed then would have forgotten a claim that the catalog has settled, and be taken for one that was set back.
      await lockAndRegister(client, guard, 'flush');
      await beforeChange(() => checkActive(client, guard));
      return { outcome: 'applied', facts: await statement(client) };
    } finally {
      abandon(client);
    }
  });
}

/**
 * One transaction inside another database of the engine. Its own token row is the lock there: a tenant could take an
 * advisory lock of ours, but cannot see our schema. The control database's lock is held all the while.
 * @param databaseOid the target is an OID: its name is read under the lock, and the OID compared after connecting
 */
export function guardedBatchIn(
  guard: Guard,
  databaseOid: number,
  kind: string,
  change: Change,
): Promise<GuardedResult> {
  return attempts(guard, async () => {
    const control = await connect(guard, CONTROL_DATABASE);
    try {
      await lockAndRegister(control, guard, 'flushed by the change');
      await beforeChange(() => checkActive(control, guard));
      const target = await connect(guard, await beforeChange(() => nameOf(control, databaseOid)));
      try {
        await beforeChange(() => registerIn(target, guard, databaseOid));
        const result = await transaction(target, guard, kind, change);
        // Once the socket has closed, the backend no longer counts as a session, which a rename right after would wait for.
        await target.end().catch(() => undefined);
        return result;
      } finally {
        abandon(target);
      }
    } finally {
      abandon(control);
    }
  });
}

async function nameOf(control: Client, databaseOid: number): Promise<string> {
  const { rows } = await control.query<{ name: string }>('select datname as name from pg_database where oid = $1', [
    databaseOid,
  ]);
  const [row] = rows;
  if (row === undefined)
    throw new Refusal('database_gone', `the database with OID ${databaseOid} does not exist any more`);
  return row.name;
}

/** Again after a certain "nothing done", under the same token, until the deadline leaves no time for another try. */
async function attempts(guard: Guard, attempt: () => Promise<GuardedResult>): Promise<GuardedResult> {
  const giveUpAt = Date.now() + guard.deadlineMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Refusal)
        return {
          outcome: 'refused',
          reason: { code: error.code, message: error.message },
          ...(error.facts === undefined ? {} : { facts: error.facts }),
        };
      const busy = error instanceof NothingDone ? UNREACHABLE : BUSY[errorCode(error) ?? ''];
      if (busy !== undefined) {
        const { code, pauseMs = RETRY_PAUSE_MS, lastsMs = 0 } = busy;
        if (Date.now() + pauseMs + lastsMs < giveUpAt) {
          await setTimeout(pauseMs);
          continue;
        }
        const message = error instanceof NothingDone ? error.message : errorSentence(error);
        return { outcome: 'refused', reason: { code, message } };
      }
      return classifyEngineError(error) === 'answered'
        ? { outcome: 'refused', reason: { code: answeredCode(error), message: errorSentence(error) } }
        : { outcome: 'unknown', reason: { code: 'connection_lost', message: errorSentence(error) } };
    }
  }
}

interface Busy {
  /** What it is called when the deadline comes first. */
  readonly code: string;
  readonly pauseMs?: number;
  /** How long the next try may wait before it is known to have failed as well. */
  readonly lastsMs?: number;
}

const UNREACHABLE: Busy = { code: 'engine_unreachable' };

/** Known refusals that are worth another try. */
const BUSY: Readonly<Partial<Record<string, Busy>>> = {
  // A session is on the database.
  55006: { code: 'database_in_use' },
  // No connection is free.
  53300: { code: 'engine_busy' },
  // A lost deadlock.
  '40P01': { code: 'engine_busy' },
  // A lock was not free in time. Whoever asks for it next waits behind our request, so they get as long without it.
  '55P03': { code: 'objects_in_use', pauseMs: SHORT_LOCK_WAIT_MS, lastsMs: SHORT_LOCK_WAIT_MS },
};

/** Stable codes for refusals that a plan or a person goes by; everything else is told by its SQLSTATE in the message. */
const REFUSAL_CODES: Readonly<Record<string, string>> = {
  // A lost race answers 23505 as well as 42710 or 42P04.
  23505: 'foreign_object',
  42710: 'foreign_object',
  '42P04': 'foreign_object',
  53100: 'disk_full',
  '2BP01': 'dependent_objects',
};

function answeredCode(error: unknown): string {
  return REFUSAL_CODES[errorCode(error) ?? ''] ?? 'refused_by_engine';
}

async function connect(guard: Guard, database: string): Promise<Client> {
  try {
    return await guard.connections.take(guard.engine, database);
  } catch (error) {
    if (isNotReadyYet(error) || classifyEngineError(error) !== 'answered')
      throw new NothingDone(`the engine cannot be reached: ${errorSentence(error)}`, { cause: error });
    throw error;
  }
}

/** A step before the change: a connection that is lost here has changed nothing, and its transaction ends with it. */
async function beforeChange<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof Refusal) && classifyEngineError(error) !== 'answered')
      throw new NothingDone(`the connection to the engine was lost before the change: ${errorSentence(error)}`, {
        cause: error,
      });
    throw error;
  }
}

/** The session lock's number: advisory locks take 64 bits, a UUID's first half. */
function lockKey(subjectId: string): string {
  return BigInt.asIntN(64, BigInt(`0x${subjectId.replaceAll('-', '').slice(0, 16)}`)).toString();
}

/**
 * Takes the session lock and registers the token with the backend that will act.
 *
 * The registration is committed, so that a revoker sees it. It need not be flushed where a transaction follows: should the
 * server crash before, its backend is gone too, and what the transaction commits is flushed after it, in the order of the log.
 */
async function lockAndRegister(
  client: Client,
  guard: Guard,
  durably: 'flush' | 'flushed by the change',
): Promise<void> {
  await beforeChange(async () => {
    await client.query('select pg_advisory_lock($1)', [lockKey(guard.subjectId)]);
    const { installation, engine, claimNumber } = guard;
    const registered = await lastOf(
      client,
      `${durably === 'flush' ? '' : 'set local synchronous_commit to off;'}
       with age as (
         update surefoot.identity set claim_number = greatest(claim_number, ${claimNumber})
          where installation = ${quoteLiteral(installation)} and engine = ${quoteLiteral(engine.engineId)}
            and identity = ${quoteLiteral(engine.identity)}
         returning 1)
       ${registration(guard)}, age ${OWN_BACKEND_AGAIN}`,
    );
    if (registered.rowCount === 1) return;
    throw (
      (await refusalIfRevoked(client, guard)) ??
      new Refusal('age', 'the engine is not the one the catalog knows: its control database has another identity')
    );
  });
}

async function registerIn(client: Client, guard: Guard, databaseOid: number): Promise<void> {
  const registered = await lastOf(
    client,
    `set local synchronous_commit to off;
     ${registration(guard)}, pg_database d where d.datname = current_database() and d.oid = ${databaseOid} ${OWN_BACKEND_AGAIN}`,
  );
  if (registered.rowCount === 1) return;
  throw (
    (await refusalIfRevoked(client, guard)) ??
    new Refusal('database_gone', `the database with OID ${databaseOid} was replaced by another one of its name`)
  );
}

function registration({ token, effectId, resource, attempt, claimNumber }: Guard): string {
  return `insert into surefoot.tokens (token, effect, resource, attempt, claim_number, state, backend_pid, backend_start)
    select ${quoteLiteral(token)}, ${quoteLiteral(effectId)}, ${quoteLiteral(resource)}, ${attempt}, ${claimNumber}, 'active',
           a.pid, a.backend_start
      from pg_stat_get_activity(pg_backend_pid()) a`;
}

/** The same token on a later connection of the same act: the earlier one has done nothing. */
const OWN_BACKEND_AGAIN = `
  on conflict (token) do update set backend_pid = excluded.backend_pid, backend_start = excluded.backend_start
   where tokens.state = 'active'`;

async function refusalIfRevoked(client: Client, { token }: Guard): Promise<Refusal | undefined> {
  const { rows } = await client.query<{ state: string }>('select state from surefoot.tokens where token = $1', [token]);
  return rows[0]?.state === 'revoked' ? new Refusal('revoked', 'the token of this effect has been revoked') : undefined;
}

/** Reads the token's row under its lock. Inside a transaction, a revoker that comes now waits for that transaction's end. */
async function checkActive(client: Client, guard: Guard, first = ''): Promise<void> {
  const row = await lastOf(
    client,
    `${first} select state from surefoot.tokens where token = ${quoteLiteral(guard.token)} for update`,
  );
  if (row.rows[0]?.['state'] !== 'active') throw new Refusal('revoked', 'the token of this effect has been revoked');
}

async function transaction(client: Client, guard: Guard, kind: string, change: Change): Promise<GuardedResult> {
  const facts = await beforeChange(async () => {
    await checkActive(client, guard, 'begin;');
    const found = await change(client);
    await client.query('insert into surefoot.ledger (token, kind, facts) values ($1, $2, $3)', [
      guard.token,
      kind,
      JSON.stringify(found),
    ]);
    return found;
  });
  // From here on a lost reply is unknown: the server may have committed.
  await client.query('commit');
  return { outcome: 'applied', facts };
}

/** Several statements in one round trip; pg answers with a result for each, of which the last counts. */
async function lastOf(client: Client, statements: string): Promise<QueryAnswer> {
  const results = (await client.query(statements)) as unknown as QueryAnswer | readonly QueryAnswer[];
  const last = [results].flat().at(-1);
  if (last === undefined) throw new TypeError('no statement was answered');
  return last;
}

interface QueryAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly rowCount: number | null;
}
