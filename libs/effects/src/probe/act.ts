/**
 * Real logins over the published address, tier by tier, as a user would make them: what must work works, and the way to a
 * neighbour and to the engine's own databases is refused. Nothing is changed, so it may be repeated at any time.
 */
import { setTimeout } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import type { Tier } from '#kernel';
import { TIERS } from '#kernel';
import type { Client, Login } from '#postgres';
import { connectLogin, errorCode, errorSentence, isNotReadyYet } from '#postgres';
import type { Act, ActContext, ActResult } from '../contract.ts';
import { applied, refused } from '../contract.ts';

const RETRY_PAUSE_MS = 100;

export const act: Act<'probe'> = async (context, spec) => {
  const giveUpAt = Date.now() + context.deadlineMs;
  for (;;) {
    const result = await probeAll(context, spec);
    // An engine that is just starting, or out of connections, is asked again; a wrong answer is one.
    if (result !== 'again') return result;
    if (Date.now() > giveUpAt) return refused('probe_failed', 'the engine did not take the logins before the deadline');
    await setTimeout(RETRY_PAUSE_MS);
  }
};

async function probeAll(context: ActContext, spec: Parameters<typeof act>[1]): Promise<ActResult | 'again'> {
  const ca = await readFile(context.engine.caFile, 'utf8');
  const { passwords } = context.secrets;
  if (passwords === undefined) throw new TypeError('the probe needs the passwords of the logins');
  const login = (tier: Tier, database: string): Login => ({
    port: context.engine.port,
    ca,
    user: spec.names.logins[tier],
    password: passwords[tier],
    database,
  });
  try {
    await Promise.all(
      TIERS.flatMap((tier) => [
        mustWork(login(tier, spec.names.database), tier, spec.databaseOid),
        ...spec.refusedDatabases.map((database) => mustBeRefused(login(tier, database))),
      ]),
    );
    return applied({ tiers: TIERS, refusedDatabases: spec.refusedDatabases.length });
  } catch (error) {
    if (error instanceof WrongAnswer) return refused('probe_failed', error.message);
    if (isNotReadyYet(error)) return 'again';
    return refused('probe_failed', errorSentence(error));
  }
}

class WrongAnswer extends Error {}

/** No entry in the rule file, or no CONNECT: the two ways to be kept out. */
const KEPT_OUT = new Set(['28000', '42501']);

async function mustBeRefused(login: Login): Promise<void> {
  let client: Client;
  try {
    client = await connectLogin(login);
  } catch (error) {
    if (KEPT_OUT.has(errorCode(error) ?? '')) return;
    throw error;
  }
  await client.end();
  throw new WrongAnswer(`${login.user} can connect to ${login.database}, which must be closed to it`);
}

const PRIVILEGES = /* sql */ `
  select (select oid from pg_database where datname = current_database()) as "databaseOid",
         has_schema_privilege('public', 'CREATE') as creates,
         has_schema_privilege('public', 'USAGE') as uses`;

async function mustWork(login: Login, tier: Tier, databaseOid: number): Promise<void> {
  const client = await connectLogin(login);
  try {
    const { rows } = await client.query<{ databaseOid: number; creates: boolean; uses: boolean }>(PRIVILEGES);
    const [found] = rows;
    if (Number(found?.databaseOid) !== databaseOid)
      throw new WrongAnswer(
        `${login.user} reached a database with OID ${String(found?.databaseOid)}, not ${databaseOid}`,
      );
    if (found?.uses !== true || found.creates !== (tier === 'migrate'))
      throw new WrongAnswer(`${login.user} has other rights on schema public than its tier ${tier} gives`);
    await client.end();
  } catch (error) {
    client.end().catch(() => undefined);
    throw error;
  }
}
