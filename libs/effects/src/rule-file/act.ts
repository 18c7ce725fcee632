/**
 * Publishes one whole rule file and proves that it is in force (DESIGN §6).
 *
 * 1. Under the file's own lock, with the token not revoked, and only over the content that is expected there. An edit by
 *    somebody else is refused, also one that comes in the middle.
 * 2. Nothing is installed that our parser does not read back as these rules, and nothing is loaded in which the server finds
 *    an error: a broken file would stop its next start.
 * 3. In force is what a fresh connection proves. What pg_reload_conf() says proves nothing.
 *
 * Before the reload every failure puts the previous bytes back; after it, only the proof decides.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { askForGeneration, FileLockBusy, placeConfFile, readIfThere, RULE_FILE, sha256, withFileLock } from '#engines';
import { CONTROL_DATABASE } from '#fencing';
import type { RuleSet } from '#hba';
import { renderRuleFile, ruleFileFaults } from '#hba';
import type { Client } from '#postgres';
import { abandon, errorSentence } from '#postgres';
import type { Act, ActContext, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import type { TimeLeft } from '../daemon-act.ts';
import { timeLeft } from '../daemon-act.ts';
import type { Publication } from './install.ts';
import { install, previousPath } from './install.ts';

const PROOF_PAUSE_MS = 20;

export const act: Act<'rule-file'> = async (context, spec) => {
  const time = timeLeft(context.deadlineMs);
  const { engineId, generation, profiles, previousDigest } = spec;
  const rules: RuleSet = { engineId, generation, profiles };
  const after = render(rules);
  if (typeof after !== 'string') return refused('rule_file_invalid', after.fault);
  const before = previousDigest ?? sha256(renderRuleFile({ engineId, generation: 0, profiles: [] }, sha256));
  try {
    return await withFileLock(join(context.engine.folder, 'rules.lock'), time.left(), () =>
      publish(context, { rules, after, before }, time),
    );
  } catch (error) {
    if (error instanceof FileLockBusy) return refused('rule_file_locked', error.message);
    throw error;
  }
};

function render(rules: RuleSet): string | { readonly fault: string } {
  try {
    const text = renderRuleFile(rules, sha256);
    const faults = ruleFileFaults(text, rules, sha256);
    return faults.length === 0 ? text : { fault: faults.join('; ') };
  } catch (error) {
    if (error instanceof TypeError) return { fault: error.message };
    throw error;
  }
}

async function publish(context: ActContext, publication: Publication, time: TimeLeft): Promise<ActResult> {
  const { engine, inHand } = context;
  // The tombstone of this kind of effect is a file: a revoker needs no running engine for it.
  if (existsSync(join(engine.folder, '..', '..', 'fences', inHand.token)))
    return refused('revoked', 'the token of this effect has been revoked');
  // First of all a server that can check the file: without one nothing is begun.
  const client = await connect(context, time);
  if (typeof client === 'string') return refused('engine_unreachable', client);
  try {
    const path = join(engine.confFolder, RULE_FILE);
    const found = readIfThere(path) ?? '';
    const wasThere = found === publication.after;
    // The same file again, and in force: no write, and no reload (FIELD-CASES B044).
    if (wasThere && (await isInForce(context, publication.rules.generation))) return done(publication);
    if (!wasThere) {
      const refusal = install(path, found, publication);
      if (refusal !== undefined) return refusal;
    }
    return await putInForce(context, client, publication, wasThere ? readIfThere(previousPath(path)) : found, time);
  } finally {
    abandon(client);
  }
}

async function putInForce(
  context: ActContext,
  client: Client,
  publication: Publication,
  previous: string | undefined,
  time: TimeLeft,
): Promise<ActResult> {
  try {
    const errors = await errorsInFile(client);
    return errors === undefined
      ? await load(context, client, publication, time)
      : putBack(join(context.engine.confFolder, RULE_FILE), previous, errors);
  } catch (error) {
    // The server went away. If it comes back by itself, it comes back with the file that is written now.
    return unknown('rules_not_in_force', `the file is written, and the server was lost: ${errorSentence(error)}`);
  }
}

async function connect({ connections, engine }: ActContext, time: TimeLeft): Promise<Client | string> {
  for (;;) {
    try {
      return await connections.take(engine, CONTROL_DATABASE);
    } catch (error) {
      if (!(await time.pause())) return `the engine cannot be reached: ${errorSentence(error)}`;
    }
  }
}

/** What the server finds wrong with the file as it stands on disk; undefined when it would load it. */
async function errorsInFile(client: Client): Promise<string | undefined> {
  const { rows } = await client.query<{ line: number; error: string }>(
    'select line_number as line, error from pg_hba_file_rules where error is not null order by line_number',
  );
  return rows.length === 0 ? undefined : rows.map(({ line, error }) => `line ${line}: ${error}`).join('; ');
}

/** Nothing was loaded yet, so with the previous bytes in place nothing has happened. */
function putBack(path: string, previous: string | undefined, errors: string): ActResult {
  if (previous === undefined) return unknown('rule_file_invalid', `${errors}; there is no previous file to put back`);
  placeConfFile(path, previous);
  return refused('rule_file_invalid', `the server does not take the file, and the previous one is back: ${errors}`);
}

async function load(context: ActContext, client: Client, publication: Publication, time: TimeLeft): Promise<ActResult> {
  await client.query('select pg_reload_conf()');
  do {
    if (await isInForce(context, publication.rules.generation)) return done(publication);
  } while (await time.pause(PROOF_PAUSE_MS));
  return unknown(
    'rules_not_in_force',
    `generation ${publication.rules.generation} is written, and not proven in force`,
  );
}

function done({ rules, after }: Publication): ActResult {
  return applied({ generation: rules.generation, digest: sha256(after) });
}

async function isInForce({ engine }: ActContext, generation: number): Promise<boolean> {
  return (await askForGeneration(engine, generation)).asked;
}
