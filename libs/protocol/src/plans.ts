/**
 * Plans: given what an operation is for and which of its effects have settled, the one next step. Pure, and the same in
 * first run and recovery; there is no other place that decides what comes next.
 *
 * A plan is not a fixed list: what a removal has to do depends on what was made, and a refused drop can need a disown first.
 */
import type { EffectOutcome, EnvironmentNames, Reason } from '#kernel';
import { DROP_ROLES_ROUNDS_MAX } from '#kernel';
import type { EffectFacts, EffectKind, Identities, PlannedEffect } from './effects.ts';
import { planned } from './effects.ts';

export interface EffectRecord {
  readonly kind: EffectKind;
  readonly outcome: EffectOutcome;
  readonly facts: EffectFacts;
  readonly reason?: Reason;
}

export interface EnvironmentSubject {
  readonly type: 'environment';
  readonly id: string;
  readonly names: EnvironmentNames;
  readonly extensions: readonly string[];
  readonly connectionLimit: number;
  readonly profile: string;
  /** Names of databases that the probe must find closed: a neighbour when there is one, and the engine's own. */
  readonly refusedDatabases: readonly string[];
  readonly identities: Identities;
}

export interface EngineSubject {
  readonly type: 'engine';
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly port: number;
  readonly networkPool: string;
  readonly identities: Identities;
}

export interface Situation<S extends EnvironmentSubject | EngineSubject = EnvironmentSubject | EngineSubject> {
  readonly subject: S;
  /** In the order they were recorded. */
  readonly effects: readonly EffectRecord[];
  readonly cancelRequested: boolean;
  /** A delete waits for this operation: what was made is left to it. */
  readonly superseded: boolean;
  /** Set when recovery gave up on the operation: undo, then fail with this. */
  readonly abandon?: Reason;
}

export type Step =
  | { readonly do: 'effect'; readonly effect: PlannedEffect }
  | { readonly do: 'finish'; readonly state: 'succeeded' | 'failed' | 'cancelled'; readonly reason?: Reason }
  /** An undo or a delete met a refusal it cannot get past: it never ends half-done. */
  | { readonly do: 'block'; readonly reason: Reason };

function effect(plannedEffect: PlannedEffect): Step {
  return { do: 'effect', effect: plannedEffect };
}

/** The last word on a kind within this operation; an `absent` one counts as never done. */
function last(effects: readonly EffectRecord[], kind: EffectKind): EffectRecord | undefined {
  return effects.findLast((record) => record.kind === kind);
}

const CREATE_ENVIRONMENT = [
  'roles',
  'database',
  'interior',
  'publish-database',
  'rules',
  'probe',
] as const satisfies readonly EffectKind[];

export function planEnvironmentCreate(situation: Situation<EnvironmentSubject>): Step {
  return forwardThenUndo(situation, CREATE_ENVIRONMENT, environmentEffect, removeEnvironment);
}

function environmentEffect(kind: (typeof CREATE_ENVIRONMENT)[number], subject: EnvironmentSubject): PlannedEffect {
  const { id: environmentId, names, connectionLimit, extensions, profile, identities, refusedDatabases } = subject;
  const databaseOid = (): number => known(identities.databaseOid, 'databaseOid');
  switch (kind) {
    case 'roles':
      return planned(kind, { environmentId, names, connectionLimit });
    case 'database':
      return planned(kind, { environmentId });
    case 'interior':
      return planned(kind, { environmentId, databaseOid: databaseOid(), names, extensions });
    case 'publish-database':
      return planned(kind, { environmentId, databaseOid: databaseOid(), names, connectionLimit });
    case 'rules':
      return planned(kind, { environmentId, names, profile });
    case 'probe':
      return planned(kind, { environmentId, databaseOid: databaseOid(), names, refusedDatabases });
    default:
      return kind satisfies never;
  }
}

export function planEnvironmentDelete(situation: Situation<EnvironmentSubject>): Step {
  return givenUp(situation) ?? removeEnvironment(situation) ?? { do: 'finish', state: 'succeeded' };
}

/** What is not undone never ends half-done: it fails only while nothing of it has been done. */
function givenUp({ abandon, effects }: Situation): Step | undefined {
  if (abandon === undefined || effects.some((record) => record.outcome !== 'absent')) return undefined;
  return { do: 'finish', state: 'failed', reason: abandon };
}

/** In reverse, from recorded identities only; undefined when nothing is left. */
function removeEnvironment({ subject, effects }: Situation<EnvironmentSubject>): Step | undefined {
  const { id: environmentId, names, profile, identities } = subject;
  const { databaseOid, roleOids } = identities;
  if (databaseOid !== undefined) {
    const kind = identities.retired === true ? 'drop-database' : 'retire-database';
    const refused = refusal(effects, kind);
    if (refused !== undefined) return { do: 'block', reason: refused };
    return effect(
      kind === 'drop-database'
        ? planned(kind, { environmentId, databaseOid })
        : planned(kind, { environmentId, databaseOid, names, profile }),
    );
  }
  if (roleOids === undefined) return undefined;
  const dropped = last(effects, 'drop-roles');
  if (dropped?.outcome !== 'refused') return effect(planned('drop-roles', { environmentId, roleOids }));
  const reason = dropped.reason ?? { code: 'refused', message: 'the roles could not be dropped' };
  if (reason.code !== 'dependent_objects') return { do: 'block', reason };
  const rounds = effects.filter((record) => record.kind === 'drop-roles' && record.outcome === 'refused').length;
  const disowned = effects.findLastIndex((record) => record.kind === 'disown');
  if (disowned > effects.lastIndexOf(dropped)) {
    const disown = effects[disowned];
    if (disown?.outcome === 'refused') return { do: 'block', reason: disown.reason ?? reason };
    if (disown?.outcome === 'applied') return effect(planned('drop-roles', { environmentId, roleOids }));
  }
  if (rounds >= DROP_ROLES_ROUNDS_MAX) return { do: 'block', reason };
  const databaseOids = dropped.facts['databaseOids'] as readonly number[];
  return effect(planned('disown', { environmentId, roleOids, databaseOids }));
}

const CREATE_ENGINE = [
  'engine-files',
  'image',
  'network',
  'volume',
  'engine-container',
  'engine-start',
  'engine-ready',
  'rule-file',
] as const satisfies readonly EffectKind[];

export function planEngineCreate(situation: Situation<EngineSubject>): Step {
  return forwardThenUndo(situation, CREATE_ENGINE, engineEffect, removeEngine);
}

function engineEffect(kind: (typeof CREATE_ENGINE)[number], subject: EngineSubject): PlannedEffect {
  const { id: engineId, name, image, port, networkPool, identities } = subject;
  const containerId = (): string => known(identities.containerId, 'containerId');
  switch (kind) {
    case 'engine-files':
      return planned(kind, { engineId, name });
    case 'image':
      return planned(kind, { engineId, image });
    case 'network':
      return planned(kind, { engineId, pool: networkPool });
    case 'volume':
      return planned(kind, { engineId });
    case 'engine-container':
      return planned(kind, {
        engineId,
        name,
        imageId: known(identities.imageId, 'imageId'),
        networkId: known(identities.networkId, 'networkId'),
        volumeName: known(identities.volumeName, 'volumeName'),
        port,
      });
    case 'engine-start':
    case 'engine-ready':
      return planned(kind, { engineId, containerId: containerId() });
    case 'rule-file':
      return planned(kind, {
        engineId,
        generation: 1,
        profiles: [{ name: 'local', cidrs: known(identities.localCidrs, 'localCidrs') }],
        port,
      });
    default:
      return kind satisfies never;
  }
}

function removeEngine({ subject, effects }: Situation<EngineSubject>): Step | undefined {
  const { id: engineId, identities } = subject;
  const { containerId, volumeName, networkId } = identities;
  const next =
    containerId !== undefined
      ? planned('remove-container', { engineId, containerId })
      : volumeName !== undefined
        ? planned('remove-volume', { engineId, volumeName })
        : networkId !== undefined
          ? planned('remove-network', { engineId, networkId })
          : last(effects, 'engine-files')?.outcome === 'applied'
            ? planned('remove-engine-files', { engineId })
            : undefined;
  if (next === undefined) return undefined;
  const refused = refusal(effects, next.kind);
  return refused === undefined ? effect(next) : { do: 'block', reason: refused };
}

/** An engine whose container was stopped (by `npm stop`, by a reboot) is started again: the same container, by its id. */
export function planEngineStart(situation: Situation<EngineSubject>): Step {
  const { subject, effects } = situation;
  const ended = givenUp(situation);
  if (ended !== undefined) return ended;
  for (const kind of ['engine-start', 'engine-ready'] as const) {
    const record = last(effects, kind);
    if (record?.outcome === 'refused')
      return { do: 'finish', state: 'failed', ...(record.reason === undefined ? {} : { reason: record.reason }) };
    if (record?.outcome !== 'applied') return effect(engineEffect(kind, subject));
  }
  return { do: 'finish', state: 'succeeded' };
}

/** First every effect of `kinds` in order; after a refusal, a cancellation or an abandonment what was made is undone. */
function forwardThenUndo<S extends EnvironmentSubject | EngineSubject, K extends EffectKind>(
  situation: Situation<S>,
  kinds: readonly K[],
  specify: (kind: K, subject: S) => PlannedEffect,
  remove: (situation: Situation<S>) => Step | undefined,
): Step {
  const { subject, effects, cancelRequested, superseded, abandon } = situation;
  const refused = effects.find(
    (record) => (kinds as readonly EffectKind[]).includes(record.kind) && record.outcome === 'refused',
  );
  const failure =
    abandon ??
    (refused === undefined
      ? undefined
      : (refused.reason ?? { code: 'refused', message: `${refused.kind} was refused` }));
  const open = kinds.find((kind) => last(effects, kind)?.outcome !== 'applied');
  if (failure === undefined && open === undefined) return { do: 'finish', state: 'succeeded' };
  if (failure === undefined && !cancelRequested && open !== undefined) return effect(specify(open, subject));
  const ended: Step =
    failure !== undefined
      ? { do: 'finish', state: 'failed', reason: failure }
      : { do: 'finish', state: 'cancelled', reason: { code: 'cancelled', message: 'cancelled on request' } };
  // Once an undo has begun it is carried to its end here, so that a delete that arrives meanwhile finds nothing half undone.
  if (superseded && failure === undefined && !effects.some((record) => record.outcome === 'undone')) return ended;
  return remove(situation) ?? ended;
}

/** The reason of the last refusal of a removal that has no way round it. */
function refusal(effects: readonly EffectRecord[], kind: EffectKind): Reason | undefined {
  const record = last(effects, kind);
  if (record?.outcome !== 'refused') return undefined;
  return record.reason ?? { code: 'refused', message: `${kind} was refused` };
}

function known<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new TypeError(`the plan needs ${name}, which an earlier effect settles`);
  return value;
}
