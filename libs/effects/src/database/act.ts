/**
 * CREATE DATABASE, the one step of a create that is no transaction: under the attempt's name, which is its mark, from the
 * closed template, and reachable by nobody (no connection but the administrator's, and no rule matches the name).
 */
import { attemptDatabaseName, quoteIdentifier } from '#kernel';
import { guardedStatement, Refusal } from '#fencing';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';
import { findDatabaseByName } from './observe.ts';

const TEMPLATE_DATABASE = 'surefoot_template';

export const act: Act<'database'> = (context, spec) =>
  guardedStatement(guardOf(context, spec.environmentId), async (client) => {
    const name = attemptDatabaseName(context.inHand.token);
    // `allow_connections false` would shut the administrator out too.
    await client.query(
      `create database ${quoteIdentifier(name)} with template ${quoteIdentifier(TEMPLATE_DATABASE)} connection limit 0`,
    );
    const made = await findDatabaseByName(client, name);
    if (made === undefined)
      throw new Refusal('refused_by_engine', `database ${name} is not there after it was created`);
    return { databaseOid: made.oid };
  });
