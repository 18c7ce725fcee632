/**
 * The runner: the only code that changes something outside. It does one effect at a time, makes the witness durable, and
 * only then tells. It decides nothing: an outcome that it does not know has no witness.
 */
import { performEffect } from '#effects';
import type { ActContext, ActResult } from '#effects';
import { FreshConnections } from '#postgres';
import { attemptDatabaseName, EFFECT_DEADLINE_MS } from '#kernel';
import { RECORD_VERSION } from '#protocol';
import { RecordFolders } from '#receipts';
import { CONTROL_DATABASE } from '#fencing';
import { homeFromEnvironment, loadSettings } from '#settings';
import { createLogger } from '#telemetry';
import type { ActRequest } from './messages.ts';
import { receiveRequests, send } from './messages.ts';

/** An act gives up by itself this long before the guardian kills it, so that a known "not done" is not lost. */
const MARGIN_MS = 2_000;

const settings = loadSettings(homeFromEnvironment(process.env));
const log = createLogger({ process: 'runner', hostId: settings.hostId, level: settings.logLevel, to: 'stderr' });
const records = new RecordFolders(settings.paths);
const connections = new FreshConnections({
  // The server gives up first, and says so; a runner that is killed in mid-statement leaves an unknown outcome.
  statementTimeoutMs: EFFECT_DEADLINE_MS - 2 * MARGIN_MS,
  applicationName: 'surefoot runner',
});

receiveRequests(
  process.stdin,
  (request) => {
    if (request.type === 'prepare') connections.keep(request.engine, CONTROL_DATABASE);
    // To give up is the guardian's, who kills.
    else if (request.type === 'act') void act(request);
  },
  () => process.exit(0),
);
send(process.stdout, { type: 'ready' });

async function act(request: ActRequest): Promise<void> {
  const { kind, engine, inHand, secrets, deadlineMs, claimId } = request;
  const context: ActContext = {
    installation: settings.installation,
    hostId: settings.hostId,
    engine,
    dockerHost: settings.dockerHost,
    inHand,
    secrets,
    connections,
    deadlineMs: Math.max(deadlineMs - MARGIN_MS, MARGIN_MS),
    progress: (text) => send(process.stdout, { type: 'progress', effectId: inHand.effectId, text }),
  };
  const result = await perform(context, request);
  if (result.outcome !== 'unknown') {
    // A witness that cannot be made durable must not be believed: the process ends, and recovery decides.
    records.publishWitness({
      version: RECORD_VERSION,
      claimId,
      effectId: inHand.effectId,
      token: inHand.token,
      outcome: result.outcome,
      facts: result.outcome === 'applied' ? result.facts : (result.facts ?? {}),
      ...(result.outcome === 'refused' ? { reason: result.reason } : {}),
      createdAt: new Date().toISOString(),
    });
  }
  send(process.stdout, { type: 'acted', effectId: inHand.effectId, result });
  // The first connection to a new database builds its caches; the interior, which comes next, need not wait for that.
  if (kind === 'database' && result.outcome === 'applied')
    connections.prepare(engine, attemptDatabaseName(inHand.token));
  log.info('effect acted', { effect: kind, effectId: inHand.effectId, token: inHand.token, outcome: result.outcome });
}

async function perform(context: ActContext, request: ActRequest): Promise<ActResult> {
  try {
    return await performEffect(context, request.kind, request.spec);
  } catch (error) {
    // An act that throws has not said what it did.
    log.error('effect failed without an answer', { effect: request.kind, effectId: request.inHand.effectId, error });
    const message = error instanceof Error ? error.message : String(error);
    return { outcome: 'unknown', reason: { code: 'act_failed', message } };
  }
}
