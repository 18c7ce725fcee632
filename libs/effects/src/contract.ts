/**
 * The shape that every effect folder has: `act.ts` does the one external change under a token, `observe.ts` reads what is
 * there. An act runs in the runner, in a process of its own, and is killed at its deadline.
 */
import type { JsonObject, Reason, Tier } from '#kernel';
import type { FreshConnections } from '#postgres';
import type { EffectKind, EffectSpecs } from '#protocol';

export type ActResult =
  | { readonly outcome: 'applied'; readonly facts: JsonObject }
  /** Nothing is there now, nor can come of it later. `facts` tell what the plan may need to go on. */
  | { readonly outcome: 'refused'; readonly reason: Reason; readonly facts?: JsonObject }
  /** A time-out, a lost connection, an answer that says nothing: only an observation after a fence closes it. */
  | { readonly outcome: 'unknown'; readonly reason: Reason };

export function applied(facts: JsonObject = {}): ActResult {
  return { outcome: 'applied', facts };
}

export function refused(code: string, message: string, facts?: JsonObject): ActResult {
  return { outcome: 'refused', reason: { code, message }, ...(facts === undefined ? {} : { facts }) };
}

export function unknown(code: string, message: string): ActResult {
  return { outcome: 'unknown', reason: { code, message } };
}

/** Where an engine of this host is reached, and where its files are. Absolute paths. */
export interface EnginePlace {
  readonly engineId: string;
  /** Name given by people, for messages. */
  readonly name: string;
  /** `host/engines/{id}` of the state folder. */
  readonly folder: string;
  /** Mounted into the container as a whole; holds pg_hba.conf, the certificate, the entrypoint. */
  readonly confFolder: string;
  /** PostgreSQL's socket folder, mounted from the host: it answers even while the daemon is dead. */
  readonly socketFolder: string;
  /** The administrator's password, mode 0600; the container only ever gets its SCRAM verifier. */
  readonly adminPasswordFile: string;
  /** Certificate authority of this host. */
  readonly caFile: string;
  readonly caKeyFile: string;
  /** Published on loopback. */
  readonly port: number;
  /** UUID in the control database's age record. */
  readonly identity: string;
}

/** Who acts: what the engine's token row records and compares. */
export interface TokenInHand {
  readonly token: string;
  readonly effectId: string;
  readonly attempt: number;
  readonly claimNumber: number;
  readonly resource: string;
}

/** Never stored, never logged: they come over the pipe for one effect. */
export interface EffectSecrets {
  readonly verifiers?: Readonly<Record<Tier, string>>;
  readonly passwords?: Readonly<Record<Tier, string>>;
  /** A service's files, by name: what is in them. */
  readonly files?: Readonly<Record<string, string>>;
  /** What the registry asks for that an image is pulled from. */
  readonly registry?: { readonly username: string; readonly password: string };
}

export interface ActContext {
  readonly installation: string;
  readonly hostId: string;
  readonly engine: EnginePlace;
  /** As DOCKER_HOST: `unix:///…`. */
  readonly dockerHost: string;
  readonly inHand: TokenInHand;
  readonly secrets: EffectSecrets;
  /** Administrator connections to engines of this host, each used once. */
  readonly connections: FreshConnections;
  /** Milliseconds; the guardian kills the runner then, so an act should have given up shortly before. */
  readonly deadlineMs: number;
  /** How far a long act is, in a few words for people; at most once a second, and without a secret. */
  progress(text: string): void;
}

export type Act<K extends EffectKind> = (context: ActContext, spec: EffectSpecs[K]) => Promise<ActResult>;
