/**
 * Plans: given what an operation is for and which of its effects have settled, the one next step. Pure, and the same in
 * first run and recovery; there is no other place that decides what comes next.
 *
 * A plan is not a fixed list: what a removal has to do depends on what was made, and a refused drop can need a disown first.
 */
import type { EffectOutcome, EnvironmentNames, Reason } from '#kernel';
import { DROP_ROLES_ROUNDS_MAX } from '#kernel';
import type { EffectFacts, EffectKind, EffectSpecs, Identities, PlannedEffect } from './effects.ts';
import { planned } from './effects.ts';
import type { Service, ServicePlace } from './services.ts';
import { SERVICES_PROFILE } from './services.ts';

export interface EffectRecord {
  readonly kind: EffectKind;
  /** The service that it is about, where it is about one. */
  readonly serviceId?: string;
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
  /** In the order in which they start. */
  readonly services: readonly Service[];
  /** Where they run: on the engine's host. */
  readonly place: ServicesPlace;
}

export interface ServicesPlace {
  readonly networkPool: string;
  /** Joined to an environment's network as the database. Undefined while the engine has none. */
  readonly engineContainerId: string | undefined;
  /** Undefined: this host publishes no ports. */
  readonly published: ServicePlace | undefined;
}

export interface EngineSubject {
  readonly type: 'engine';
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly port: number;
  readonly networkPool: string;
  readonly identities: Identities;
  /** The rule file in force; undefined before the first. */
  readonly rules?: { readonly generation: number; readonly digest: string };
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

/** One step of a plan: an effect kind, and the service that it is for where each service has one. */
interface StepOf<K extends EffectKind = EffectKind> {
  readonly kind: K;
  readonly service?: Service;
}

/** The last word on a step within this operation; an `absent` one counts as never done. */
function last(effects: readonly EffectRecord[], { kind, service }: StepOf): EffectRecord | undefined {
  return effects.findLast((record) => record.kind === kind && record.serviceId === service?.id);
}

const DATABASE_FIRST = [
  'roles',
  'database',
  'interior',
  'publish-database',
  'rules',
] as const satisfies readonly EffectKind[];
const PER_SERVICE = ['container', 'secrets', 'start', 'healthy'] as const satisfies readonly EffectKind[];
type CreateKind =
  | (typeof DATABASE_FIRST)[number]
  | (typeof PER_SERVICE)[number]
  | 'image'
  | 'network'
  | 'join-network'
  | 'port-network'
  | 'probe'
  | 'publish-service';

/** Images first: what is most likely to fail, and to take long, comes before anything is made. */
function createEnvironmentSteps({ services }: EnvironmentSubject): readonly StepOf<CreateKind>[] {
  const some = services.length > 0;
  return [
    ...services.map((service): StepOf<CreateKind> => ({ kind: 'image', service })),
    ...DATABASE_FIRST.map((kind) => ({ kind })),
    ...(some ? [{ kind: 'network' } as const, { kind: 'join-network' } as const] : []),
    ...(services.some(({ ports }) => ports.length > 0) ? [{ kind: 'port-network' } as const] : []),
    ...services.flatMap((service) => PER_SERVICE.map((kind) => ({ kind, service }))),
    { kind: 'probe' },
    ...services.map((service): StepOf<CreateKind> => ({ kind: 'publish-service', service })),
  ];
}

export function planEnvironmentCreate(situation: Situation<EnvironmentSubject>): Step {
  const steps = createEnvironmentSteps(situation.subject);
  const abandon = situation.abandon ?? portsWithdrawn(situation);
  return forwardThenUndo(
    { ...situation, ...(abandon === undefined ? {} : { abandon }) },
    steps,
    (step) => environmentEffect(step, situation),
    removeEnvironment,
  );
}

/** Accepted while the host published ports, which it has stopped to do since. What is made has its ports. */
function portsWithdrawn({ subject, effects }: Situation<EnvironmentSubject>): Reason | undefined {
  if (subject.place.published !== undefined) return undefined;
  const without = subject.services.find(
    (service) => service.ports.length > 0 && last(effects, { kind: 'container', service })?.outcome !== 'applied',
  );
  if (without === undefined) return undefined;
  return {
    code: 'ports_unavailable',
    message: `the host publishes no ports any more, and service ${without.name} has some`,
  };
}

function environmentEffect(
  { kind, service }: StepOf<CreateKind>,
  { subject, effects }: Situation<EnvironmentSubject>,
): PlannedEffect {
  const { id: environmentId, names, connectionLimit, extensions, identities, refusedDatabases, place } = subject;
  const databaseOid = (): number => known(identities.databaseOid, 'databaseOid');
  const networkId = (): string => known(identities.networkId, 'networkId');
  const engineContainerId = (): string => known(place.engineContainerId, 'engineContainerId');
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
      return planned(kind, { environmentId, names, profiles: profilesOf(subject) });
    case 'network':
      return planned(kind, { owner: { type: 'environment', id: environmentId }, pool: place.networkPool });
    case 'join-network':
      return planned(kind, { environmentId, networkId: networkId(), engineContainerId: engineContainerId() });
    case 'port-network':
      return planned(kind, { environmentId, pool: place.networkPool });
    case 'probe':
      return planned(kind, { environmentId, databaseOid: databaseOid(), names, refusedDatabases });
    case 'image':
    case 'container':
    case 'secrets':
    case 'start':
    case 'healthy':
    case 'publish-service':
      return serviceEffect(kind, known(service, 'service'), subject, effects);
    default:
      return kind satisfies never;
  }
}

function serviceEffect(
  kind: (typeof PER_SERVICE)[number] | 'image' | 'publish-service',
  service: Service,
  { id: environmentId, identities, place }: EnvironmentSubject,
  effects: readonly EffectRecord[],
): PlannedEffect {
  const { id: serviceId, name, image, command, env, limits, readOnly, user, health } = service;
  const of = { environmentId, serviceId };
  const made = (): { containerId: string } => ({
    containerId: known(identities.services?.[serviceId], 'container of the service').containerId,
  });
  const networkId = (): string => known(identities.networkId, 'networkId');
  switch (kind) {
    case 'image':
      return planned(kind, { image, serviceId });
    case 'container': {
      const pinned = last(effects, { kind: 'image', service })?.facts['imageId'] as string | undefined;
      const spec = { ...of, name, imageId: known(pinned, 'imageId'), networkId: networkId() };
      return planned(kind, {
        ...spec,
        ...publishedBy(service, identities, place),
        command,
        env,
        limits,
        readOnly,
        ...(user === undefined ? {} : { user }),
      });
    }
    case 'healthy':
      return planned(kind, {
        ...of,
        ...made(),
        networkId: networkId(),
        health,
        engineContainerId: known(place.engineContainerId, 'engineContainerId'),
      });
    case 'secrets':
    case 'start':
    case 'publish-service':
      return planned(kind, { ...of, ...made() });
    default:
      return kind satisfies never;
  }
}

function publishedBy(
  { ports }: Service,
  { portNetworkId, services = {} }: Identities,
  { published }: ServicesPlace,
): Pick<EffectSpecs['container'], 'published'> {
  if (ports.length === 0) return {};
  // Ports of this environment's other services may not be among those that are known to be taken yet.
  const own = Object.values(services).flatMap((other) => Object.values(other.ports));
  const place = known(published, 'the place of published ports');
  return {
    published: {
      ...place,
      taken: [...place.taken, ...own],
      networkId: known(portNetworkId, 'portNetworkId'),
      containerPorts: ports,
    },
  };
}

function profilesOf({ profile, services }: EnvironmentSubject): readonly string[] {
  return services.length === 0 ? [profile] : [profile, SERVICES_PROFILE];
}

export function planEnvironmentDelete(situation: Situation<EnvironmentSubject>): Step {
  return givenUp(situation) ?? removeEnvironment(situation) ?? { do: 'finish', state: 'succeeded' };
}

/** What is not undone never ends half-done: it fails only while nothing of it has been done. */
function givenUp({ abandon, effects }: Situation): Step | undefined {
  if (abandon === undefined || effects.some((record) => record.outcome !== 'absent')) return undefined;
  return { do: 'finish', state: 'failed', reason: abandon };
}

/**
 * Services that were stopped (by `npm stop`, by a reboot) are started again: the same containers, by their ids. One that
 * cannot be does not keep the others from it. Whether they are well then is the watcher's to say: waiting for it here would
 * keep the host's other work waiting.
 */
export function planEnvironmentStart(situation: Situation<EnvironmentSubject>): Step {
  const { subject, effects, abandon, cancelRequested } = situation;
  const { id: environmentId, services, identities } = subject;
  if (abandon !== undefined) return { do: 'finish', state: 'failed', reason: abandon };
  if (cancelRequested)
    return { do: 'finish', state: 'cancelled', reason: { code: 'cancelled', message: 'cancelled on request' } };
  for (const service of services) {
    const made = identities.services?.[service.id];
    const outcome = last(effects, { kind: 'start', service })?.outcome;
    if (made === undefined || outcome === 'applied' || outcome === 'refused') continue;
    const { containerId } = made;
    return effect(planned('start', { environmentId, serviceId: service.id, containerId, again: true }));
  }
  const refused = effects.find(({ outcome }) => outcome === 'refused');
  if (refused === undefined) return { do: 'finish', state: 'succeeded' };
  return { do: 'finish', state: 'failed', reason: reasonOf(refused, services) };
}

/** In reverse, from recorded identities only; undefined when nothing is left. */
function removeEnvironment(situation: Situation<EnvironmentSubject>): Step | undefined {
  return removeServices(situation) ?? removeDatabase(situation);
}

/** Containers before the networks that they are in, the last one first. */
function removeServices({ subject, effects }: Situation<EnvironmentSubject>): Step | undefined {
  const { id: environmentId, identities, place } = subject;
  const { networkId, portNetworkId, engineMayBeIn } = identities;
  // Told by what was made, not by what was asked for.
  const [serviceId, made] = Object.entries(identities.services ?? {}).at(-1) ?? [];
  const engineContainerId = (): string => known(place.engineContainerId, 'engineContainerId');
  const next =
    serviceId !== undefined && made !== undefined
      ? planned('remove-service', { environmentId, serviceId, containerId: made.containerId })
      : engineMayBeIn === true && networkId !== undefined
        ? planned('leave-network', { environmentId, networkId, engineContainerId: engineContainerId() })
        : portNetworkId !== undefined
          ? planned('remove-port-network', { environmentId, networkId: portNetworkId })
          : networkId !== undefined
            ? planned('remove-network', { owner: { type: 'environment', id: environmentId }, networkId })
            : undefined;
  if (next === undefined) return undefined;
  const refused = refusal(effects, next.kind, serviceId);
  return refused === undefined ? effect(next) : { do: 'block', reason: refused };
}

function removeDatabase({ subject, effects }: Situation<EnvironmentSubject>): Step | undefined {
  const { id: environmentId, names, identities } = subject;
  const { databaseOid, roleOids } = identities;
  if (databaseOid !== undefined) {
    const kind = identities.retired === true ? 'drop-database' : 'retire-database';
    const refused = refusal(effects, kind);
    if (refused !== undefined) return { do: 'block', reason: refused };
    return effect(
      kind === 'drop-database'
        ? planned(kind, { environmentId, databaseOid })
        : planned(kind, { environmentId, databaseOid, names, profiles: profilesOf(subject) }),
    );
  }
  if (roleOids === undefined) return undefined;
  const dropped = last(effects, { kind: 'drop-roles' });
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
  'profile-role',
  'rule-file',
] as const satisfies readonly EffectKind[];

export function planEngineCreate(situation: Situation<EngineSubject>): Step {
  const { subject } = situation;
  const steps = CREATE_ENGINE.map((kind) => ({ kind }));
  return forwardThenUndo(situation, steps, ({ kind }) => engineEffect(kind, subject), removeEngine);
}

function engineEffect(kind: (typeof CREATE_ENGINE)[number], subject: EngineSubject): PlannedEffect {
  const { id: engineId, name, image, port, networkPool, identities } = subject;
  const containerId = (): string => known(identities.containerId, 'containerId');
  switch (kind) {
    case 'engine-files':
      return planned(kind, { engineId, name });
    case 'image':
      return planned(kind, { image });
    case 'network':
      return planned(kind, { owner: { type: 'engine', id: engineId }, pool: networkPool });
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
    case 'profile-role':
      // A new engine has it from its birth; one whose making was begun by an older program has not.
      return planned(kind, { engineId, profile: SERVICES_PROFILE });
    case 'rule-file':
      return planned(kind, {
        engineId,
        generation: 1,
        profiles: engineProfiles(subject),
        port,
      });
    default:
      return kind satisfies never;
  }
}

/** `local` is this host, as the engine sees it; `private` is every network that an environment of it may get. */
function engineProfiles({ identities, networkPool }: EngineSubject): EffectSpecs['rule-file']['profiles'] {
  return [
    { name: 'local', cidrs: known(identities.localCidrs, 'localCidrs') },
    { name: SERVICES_PROFILE, cidrs: [networkPool] },
  ];
}

/** An engine that was made before there were services gets the profile that these come through. */
export function planEngineRules(situation: Situation<EngineSubject>): Step {
  const { subject, effects } = situation;
  const { id: engineId, port } = subject;
  const ended = givenUp(situation);
  if (ended !== undefined) return ended;
  for (const kind of ['profile-role', 'rule-file'] as const) {
    const record = last(effects, { kind });
    if (record?.outcome === 'refused')
      return { do: 'finish', state: 'failed', ...(record.reason === undefined ? {} : { reason: record.reason }) };
    if (record?.outcome === 'applied') continue;
    if (kind === 'profile-role') return effect(planned(kind, { engineId, profile: SERVICES_PROFILE }));
    const { generation, digest } = known(subject.rules, 'rule generation in force');
    return effect(
      planned(kind, {
        engineId,
        generation: generation + 1,
        profiles: engineProfiles(subject),
        port,
        previousDigest: digest,
      }),
    );
  }
  return { do: 'finish', state: 'succeeded' };
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
          ? planned('remove-network', { owner: { type: 'engine', id: engineId }, networkId })
          : last(effects, { kind: 'engine-files' })?.outcome === 'applied'
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
    const record = last(effects, { kind });
    if (record?.outcome === 'refused')
      return { do: 'finish', state: 'failed', ...(record.reason === undefined ? {} : { reason: record.reason }) };
    if (record?.outcome !== 'applied') return effect(engineEffect(kind, subject));
  }
  return { do: 'finish', state: 'succeeded' };
}

/** First every step in order; after a refusal, a cancellation or an abandonment what was made is undone. */
function forwardThenUndo<S extends EnvironmentSubject | EngineSubject, K extends EffectKind>(
  situation: Situation<S>,
  steps: readonly StepOf<K>[],
  specify: (step: StepOf<K>) => PlannedEffect,
  remove: (situation: Situation<S>) => Step | undefined,
): Step {
  const { subject, effects, cancelRequested, superseded, abandon } = situation;
  const forward: ReadonlySet<EffectKind> = new Set(steps.map(({ kind }) => kind));
  const refused = effects.find((record) => forward.has(record.kind) && record.outcome === 'refused');
  const failure =
    abandon ??
    (refused === undefined ? undefined : reasonOf(refused, subject.type === 'environment' ? subject.services : []));
  const open = steps.find((step) => last(effects, step)?.outcome !== 'applied');
  if (failure === undefined && open === undefined) return { do: 'finish', state: 'succeeded' };
  if (failure === undefined && !cancelRequested && open !== undefined) return effect(specify(open));
  const ended: Step =
    failure !== undefined
      ? { do: 'finish', state: 'failed', reason: failure }
      : { do: 'finish', state: 'cancelled', reason: { code: 'cancelled', message: 'cancelled on request' } };
  // Once an undo has begun it is carried to its end here, so that a delete that arrives meanwhile finds nothing half undone.
  if (superseded && failure === undefined && !effects.some((record) => record.outcome === 'undone')) return ended;
  return remove(situation) ?? ended;
}

/** Of several services, the one that it is about is named. */
function reasonOf({ kind, serviceId, reason }: EffectRecord, services: readonly Service[]): Reason {
  const { code, message } = reason ?? { code: 'refused', message: `${kind} was refused` };
  const service = services.find(({ id }) => id === serviceId);
  return { code, message: service === undefined ? message : `service ${service.name}: ${message}` };
}

/** The reason of the last refusal of a removal that has no way round it. */
function refusal(effects: readonly EffectRecord[], kind: EffectKind, serviceId?: string): Reason | undefined {
  const record = effects.findLast((one) => one.kind === kind && one.serviceId === serviceId);
  if (record?.outcome !== 'refused') return undefined;
  return record.reason ?? { code: 'refused', message: `${kind} was refused` };
}

function known<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new TypeError(`the plan needs ${name}, which an earlier effect settles`);
  return value;
}
