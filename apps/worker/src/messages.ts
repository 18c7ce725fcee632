/**
 * What goes over the pipes between worker, guardian and runner: one JSON object per line. Secrets travel here and nowhere
 * else; the pipes are anonymous, and nothing of them is logged.
 */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { ActResult, EffectSecrets, EnginePlace, TokenInHand } from '#effects';
import type { EffectKind, EffectSpecs } from '#protocol';

/** The lock's descriptor in guardian and runner: they hold it by having it open. */
export const LOCK_DESCRIPTOR = 3;
/** Open in guardian and runner, and used by neither: the worker sees its end when the last of the two is gone. */
export const LIFELINE_DESCRIPTOR = 4;

/** Worker → guardian → runner. */
export interface ActRequest {
  readonly type: 'act';
  readonly claimId: string;
  readonly kind: EffectKind;
  readonly spec: EffectSpecs[EffectKind];
  readonly engine: EnginePlace;
  readonly inHand: TokenInHand;
  readonly secrets: EffectSecrets;
  /** Milliseconds from the guardian's receiving this to its killing the runner. */
  readonly deadlineMs: number;
}

/** Worker → guardian → runner: have a connection to this engine ready. */
export interface PrepareRequest {
  readonly type: 'prepare';
  readonly engine: EnginePlace;
}

/** Worker → guardian: kill the runner of this effect, which changes nothing. */
export interface GiveUpRequest {
  readonly type: 'give-up';
  readonly effectId: string;
}

export type Request = ActRequest | PrepareRequest | GiveUpRequest;

/** Runner → guardian → worker, after the witness is durable. */
export interface ActReply {
  readonly type: 'acted';
  readonly effectId: string;
  readonly result: ActResult;
}

/** Runner → guardian → worker: how far it is, for people. */
export interface ProgressReply {
  readonly type: 'progress';
  readonly effectId: string;
  readonly text: string;
}

/** Runner → guardian → worker: it can take a request. Said again by the runner that replaces a dead one. */
export interface ReadyReply {
  readonly type: 'ready';
}

/** Guardian → worker: the runner is dead and reaped, and did not say how the effect ended. Only a witness can tell. */
export interface LostReply {
  readonly type: 'lost';
  readonly effectId: string;
  readonly why: 'deadline' | 'runner-ended' | 'given-up';
}

export type Reply = ActReply | ProgressReply | ReadyReply | LostReply;

export function send(stream: Writable, message: Request | Reply): void {
  stream.write(`${JSON.stringify(message)}\n`);
}

/** Calls `onRequest` for every line, `onEnd` when the other side is gone. */
export function receiveRequests(stream: Readable, onRequest: (request: Request) => void, onEnd: () => void): void {
  receive(stream, (message) => onRequest(message as Request), onEnd);
}

/** The other direction; that the other side is gone is noticed by its exit. */
export function receiveReplies(stream: Readable, onReply: (reply: Reply) => void): void {
  receive(
    stream,
    (message) => onReply(message as Reply),
    () => undefined,
  );
}

/** What comes over the pipe was written by `send` of the same build. */
function receive(stream: Readable, onMessage: (message: unknown) => void, onEnd: () => void): void {
  const lines = createInterface({ input: stream });
  lines.on('line', (line) => {
    onMessage(JSON.parse(line));
  });
  lines.on('close', onEnd);
}
