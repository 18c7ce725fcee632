/**
 * Plans, driven by an executor that answers as a script says. What is asserted holds for every run: it ends or blocks, an
 * effect that is in force is never done again, an undo is the exact reverse of what was made, and after its end a plan
 * wants nothing any more.
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Reason } from '#kernel';
import type { EffectFacts, EffectKind, Identities, PlannedEffect } from './effects.ts';
import { effectTraits, identitiesAfter } from './effects.ts';
import type { OperationKind } from './operations.ts';
import { nextStep } from './operations.ts';
import type { Service, ServiceIdentities } from './services.ts';
import type { EffectRecord, EngineSubject, EnvironmentSubject, Situation, Step } from './plans.ts';

const ENVIRONMENT: EnvironmentSubject = {
  type: 'environment',
  id: '11111111-1111-4111-8111-111111111111',
  names: {
    database: 'a_11111111',
    door: 'a_11111111',
    owner: 'a_11111111_owner',
    logins: { migrate: 'a_11111111_migrate', app: 'a_11111111_app', readonly: 'a_11111111_readonly' },
  },
  extensions: ['pgcrypto'],
  connectionLimit: 20,
  profile: 'local',
  refusedDatabases: ['postgres'],
  identities: {},
  services: [],
  place: {
    networkPool: '10.213.0.0/16',
    engineContainerId: 'c',
    published: { address: '127.0.0.1', ports: { from: 20_000, to: 29_999 }, taken: [20_000] },
  },
};
const service = (id: string, ports: readonly number[]): Service => ({
  id,
  name: id,
  image: `${id}:1`,
  secretNames: [],
  command: [],
  env: {},
  ports,
  health: { deadlineSeconds: 60 },
  limits: { memoryBytes: 2 ** 28, cpus: 1, pids: 256 },
  readOnly: false,
});
/** The second has a port, and so the environment a network for ports. */
const SERVICES = [service('api', []), service('web', [8080])];
const ENGINE: EngineSubject = {
  type: 'engine',
  id: '22222222-2222-4222-8222-222222222222',
  name: 'main',
  image: 'postgres:17',
  port: 5432,
  networkPool: '10.213.0.0/16',
  identities: {},
  rules: { generation: 1, digest: 'd' },
};

const roleOids = { owner: 11, door: 12, migrate: 13, app: 14, readonly: 15 };
const FACTS: Partial<Record<EffectKind, EffectFacts>> = {
  'port-network': { networkId: 'p' },
  roles: { roleOids },
  database: { databaseOid: 16 },
  image: { imageId: 'sha256:1' },
  network: { networkId: 'n' },
  volume: { volumeName: 'v' },
  'engine-container': { containerId: 'c' },
};

const CREATE_ENVIRONMENT = ['roles', 'database', 'interior', 'publish-database', 'rules', 'probe'] as const;
const WITH_SERVICES = [
  'image api',
  'image web',
  'roles',
  'database',
  'interior',
  'publish-database',
  'rules',
  'network',
  'join-network',
  'port-network',
  'container api',
  'secrets api',
  'start api',
  'healthy api',
  'container web',
  'secrets web',
  'start web',
  'healthy web',
  'probe',
  'publish-service api',
  'publish-service web',
] as const;
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
] as const;
/** A step by its kind, and by its service where it has one. */
type Done = string;
const FORWARD: readonly Done[] = [...CREATE_ENVIRONMENT, ...WITH_SERVICES, ...CREATE_ENGINE];

/** For each kind that makes something that an undo removes: how it is removed, in order. */
const REMOVALS: Readonly<Record<Done, readonly Done[]>> = {
  roles: ['drop-roles'],
  database: ['retire-database', 'drop-database'],
  // Of an environment: the engine leaves it first, whether or not it was seen to join.
  network: ['leave-network', 'remove-network'],
  volume: ['remove-volume'],
  'engine-container': ['remove-container'],
  'engine-files': ['remove-engine-files'],
  'port-network': ['remove-port-network'],
  'container api': ['remove-service api'],
  'container web': ['remove-service web'],
};
/** The engine leaves before the network for ports goes: with the services gone, the order of these two is free. */
const FREE_ORDER: readonly Done[] = ['leave-network', 'remove-port-network'];

type Answer = 'applied' | 'absent' | { readonly refused: string; readonly facts?: EffectFacts };
interface Flags {
  readonly cancelRequested?: boolean;
  readonly superseded?: boolean;
  readonly abandon?: Reason;
}
interface Run {
  /** @param nth how often this kind has been done before in this operation */
  readonly answer?: (done: Done, nth: number) => Answer;
  /** Set from this boundary on: before the effect with this ordinal, from 0. */
  readonly flags?: (boundary: number) => Flags;
  readonly identities?: Identities;
  readonly profile?: string;
  readonly services?: readonly Service[];
  /** Whether the host publishes ports, at each boundary. */
  readonly publishes?: (boundary: number) => boolean;
}

interface Ended {
  readonly step: Exclude<Step, { do: 'effect' }>;
  /** Kinds in the order in which they were done, and what came of each. */
  readonly done: readonly string[];
  readonly applied: readonly Done[];
  readonly effects: readonly EffectRecord[];
  readonly identities: Identities;
  readonly planned: readonly PlannedEffect[];
}

const BOUND = 90;

/** Record, answer, settle, until the plan ends or blocks; what the catalog does in between is done here as it does it. */
function driveAny(kind: OperationKind, run: Run = {}): Ended {
  const start: EnvironmentSubject | EngineSubject = kind.startsWith('environment')
    ? { ...ENVIRONMENT, profile: run.profile ?? ENVIRONMENT.profile, services: run.services ?? [] }
    : ENGINE;
  let identities = run.identities ?? {};
  let effects: readonly EffectRecord[] = [];
  let flags: Flags = {};
  const applied: Done[] = [];
  const planned: PlannedEffect[] = [];
  let publishes = true;
  const place = (): Partial<EnvironmentSubject> =>
    publishes ? {} : { place: { ...ENVIRONMENT.place, published: undefined } };
  const situation = (): Situation => ({
    subject: start.type === 'engine' ? { ...start, identities } : { ...start, ...place(), identities },
    effects,
    cancelRequested: flags.cancelRequested ?? false,
    superseded: flags.superseded ?? false,
    ...(flags.abandon === undefined ? {} : { abandon: flags.abandon }),
  });
  for (let boundary = 0; boundary < BOUND; boundary += 1) {
    flags = { ...flags, ...run.flags?.(boundary) };
    publishes = run.publishes?.(boundary) ?? true;
    const step = nextStep(kind, situation());
    if (step.do !== 'effect') {
      // Asked once more, as after a lost reply: the same end, and nothing to do.
      expect(nextStep(kind, situation())).toEqual(step);
      const done = effects.map((record) => `${labelOf(record)} ${settledAs(record)}`);
      return { step, done, applied, effects, identities, planned };
    }
    const { effect } = step;
    planned.push(effect);
    const { kind: effectKind } = effect;
    const serviceId = 'serviceId' in effect.spec ? effect.spec.serviceId : undefined;
    const stepDone = { kind: effectKind, ...(serviceId === undefined ? {} : { serviceId }) };
    const label = labelOf(stepDone);
    expectNotInForce(label, effects);
    const answer = run.answer?.(label, effects.filter((record) => labelOf(record) === label).length) ?? 'applied';
    if (answer === 'applied') {
      applied.push(label);
      const ofEngine = start.type === 'engine' && effectKind === 'network' ? { localCidrs: ['10.213.0.1/32'] } : {};
      const facts = { ...FACTS[effectKind], ...ofEngine, ...(serviceId === undefined ? {} : factsOf(serviceId)) };
      identities = identitiesAfter(identities, effectKind, facts);
      const undone = effectTraits(effectKind).undoes ?? [];
      effects = effects.map((record) =>
        undone.includes(record.kind) && record.serviceId === serviceId && record.outcome === 'applied'
          ? { ...record, outcome: 'undone' }
          : record,
      );
      effects = [...effects, { ...stepDone, outcome: 'applied', facts }];
    } else if (answer === 'absent') effects = [...effects, { ...stepDone, outcome: 'absent', facts: {} }];
    else
      effects = [
        ...effects,
        {
          ...stepDone,
          outcome: 'refused',
          facts: answer.facts ?? {},
          reason: { code: answer.refused, message: answer.refused },
        },
      ];
  }
  throw new Error(`the plan has not ended after ${BOUND} effects: ${effects.map((record) => record.kind).join(', ')}`);
}

function labelOf({ kind, serviceId }: Pick<EffectRecord, 'kind' | 'serviceId'>): Done {
  return serviceId === undefined ? kind : `${kind} ${serviceId}`;
}

function factsOf(serviceId: string): EffectFacts {
  const port = serviceId === 'web' ? { 8080: 20_001 } : {};
  return { serviceId, containerId: `container of ${serviceId}`, imageId: `sha256:${serviceId}`, ports: port };
}

function settledAs(record: EffectRecord): string {
  return record.outcome === 'refused' ? `refused ${record.reason?.code ?? ''}` : record.outcome;
}

/** Making something that stands, and removing it a second time, are both the double effect that must never be. */
function expectNotInForce(label: Done, effects: readonly EffectRecord[]): void {
  // A disown round and the drop after it may come again; that is their purpose.
  if (label === 'disown') return;
  expect(effects.filter((record) => labelOf(record) === label && record.outcome === 'applied')).toEqual([]);
  if (FORWARD.includes(label))
    expect(effects.filter((record) => record.outcome === 'undone' || !FORWARD.includes(labelOf(record)))).toEqual([]);
}

/** What removing `made` takes, last made first. */
function reverse(made: readonly Done[]): readonly Done[] {
  const ofEngine = made.includes('engine-files');
  const all = [...made]
    .reverse()
    .flatMap((kind) => REMOVALS[kind] ?? [])
    .filter((one) => !ofEngine || one !== 'leave-network');
  const free = all.filter((one) => FREE_ORDER.includes(one));
  const ordered = FREE_ORDER.filter((one) => free.includes(one));
  return all.map((one) => (FREE_ORDER.includes(one) ? (ordered.shift() ?? one) : one));
}

const made = (ended: Ended): readonly Done[] => ended.applied.filter((kind) => FORWARD.includes(kind));
const removed = (ended: Ended): readonly Done[] => ended.applied.filter((kind) => !FORWARD.includes(kind));
const withoutImage = ({ imageId: _stays, ...rest }: Identities): Identities => rest;

function expectNothingLeft(ended: Ended): void {
  expect(withoutImage(ended.identities)).toEqual({});
  expect(removed(ended)).toEqual(reverse(made(ended)));
}

const CREATES: readonly (readonly [string, OperationKind, readonly Done[], readonly Service[]])[] = [
  ['environment.create', 'environment.create', CREATE_ENVIRONMENT, []],
  ['environment.create with services', 'environment.create', WITH_SERVICES, SERVICES],
  ['engine.create', 'engine.create', CREATE_ENGINE, []],
];

describe.each(CREATES)('%s', (name, operation, kinds, services) => {
  const drive = (kind: OperationKind, run: Run = {}): Ended => driveAny(kind, { ...run, services });
  const boundaries = Array.from({ length: kinds.length + 1 }, (_, index) => index);

  test('does each of its effects once, in order, and succeeds', () => {
    const ended = drive(operation);
    expect(ended.applied).toEqual(kinds);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test.each(kinds)(
    'a refused %s: what was made before it is undone in reverse, and the operation fails with its reason',
    (kind) => {
      const ended = drive(operation, { answer: (one) => (one === kind ? { refused: 'because' } : 'applied') });
      expect(made(ended)).toEqual(kinds.slice(0, kinds.indexOf(kind)));
      expectNothingLeft(ended);
      const ofService = kind.split(' ')[1];
      const message = ofService === undefined ? 'because' : `service ${ofService}: because`;
      expect(ended.step).toEqual({ do: 'finish', state: 'failed', reason: { code: 'because', message } });
    },
  );

  test.each(boundaries)(
    'cancelled before effect %i: everything made is undone in reverse, and then it is cancelled',
    (at) => {
      const ended = drive(operation, { flags: (boundary) => (boundary >= at ? { cancelRequested: true } : {}) });
      if (at === kinds.length) {
        // Too late: there was no boundary left.
        expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
        return;
      }
      expect(made(ended)).toEqual(kinds.slice(0, at));
      expectNothingLeft(ended);
      expect(ended.step).toMatchObject({ do: 'finish', state: 'cancelled', reason: { code: 'cancelled' } });
    },
  );

  test.each(boundaries)(
    'superseded before effect %i: it stops at once and leaves what was made to the delete',
    (at) => {
      const ended = drive(operation, {
        flags: (boundary) => (boundary >= at ? { cancelRequested: true, superseded: true } : {}),
      });
      expect(ended.applied).toEqual(kinds.slice(0, at));
      expect(ended.step).toMatchObject({ do: 'finish', state: at === kinds.length ? 'succeeded' : 'cancelled' });
    },
  );

  test.each(boundaries)(
    'given up by recovery before effect %i: undone in reverse, and failed with the reason it was given up for',
    (at) => {
      const abandon = { code: 'interrupted', message: 'interrupted 4 times' };
      const ended = drive(operation, { flags: (boundary) => (boundary >= at ? { abandon } : {}) });
      expect(made(ended)).toEqual(kinds.slice(0, at));
      expectNothingLeft(ended);
      expect(ended.step).toEqual({ do: 'finish', state: 'failed', reason: abandon });
    },
  );

  test.each(kinds)('an absent %s is done again, and nothing else is', (kind) => {
    const ended = drive(operation, { answer: (one, nth) => (one === kind && nth < 2 ? 'absent' : 'applied') });
    expect(ended.applied).toEqual(kinds);
    expect(ended.done.filter((line) => line === `${kind} absent`)).toHaveLength(2);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test('a removal that is refused in an undo blocks with its reason, whichever it is: an undo never ends half-done', () => {
    const last = kinds.at(-1);
    const removals = reverse(kinds);
    expect(removals.length).toBeGreaterThan(1);
    for (const removal of removals) {
      const ended = drive(operation, {
        answer: (one) => (one === last ? { refused: 'because' } : one === removal ? { refused: 'stuck' } : 'applied'),
      });
      expect(ended.step).toEqual({ do: 'block', reason: { code: 'stuck', message: 'stuck' } });
      expect(removed(ended)).toEqual(removals.slice(0, removals.indexOf(removal)));
    }
  });

  test('a removal that came to nothing is done again in an undo', () => {
    const last = kinds.at(-1);
    for (const removal of reverse(kinds)) {
      const ended = drive(operation, {
        answer: (one, nth) =>
          one === last ? { refused: 'because' } : one === removal && nth === 0 ? 'absent' : 'applied',
      });
      expectNothingLeft(ended);
      expect(ended.step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'because' } });
    }
  });

  test('each effect is told what the ones before it have settled, and nothing that is not known yet', () => {
    const ended = drive(operation);
    const specs = Object.fromEntries(ended.planned.map(({ kind, spec }) => [kind, spec]));
    if (name === 'environment.create') {
      expect(specs['roles']).toEqual({ environmentId: ENVIRONMENT.id, names: ENVIRONMENT.names, connectionLimit: 20 });
      expect(specs['database']).toEqual({ environmentId: ENVIRONMENT.id });
      for (const kind of ['interior', 'publish-database', 'probe'])
        expect(specs[kind]).toMatchObject({ databaseOid: 16 });
      expect(specs['rules']).toMatchObject({ profiles: ['local'] });
    } else if (operation === 'environment.create') {
      const of = (label: Done): object | undefined =>
        ended.planned.find(({ kind, spec }) => labelOf({ kind, ...spec }) === label)?.spec;
      expect(of('rules')).toMatchObject({ profiles: ['local', 'private'] });
      expect(of('network')).toEqual({ owner: { type: 'environment', id: ENVIRONMENT.id }, pool: '10.213.0.0/16' });
      expect(of('join-network')).toMatchObject({ networkId: 'n', engineContainerId: 'c' });
      expect(of('container api')).toMatchObject({ imageId: 'sha256:api', networkId: 'n' });
      expect(of('container api')).not.toHaveProperty('published');
      expect(of('container web')).toMatchObject({
        imageId: 'sha256:web',
        networkId: 'n',
        published: { networkId: 'p', containerPorts: [8080], taken: [20_000] },
      });
      expect(of('start web')).not.toHaveProperty('again');
      for (const kind of ['secrets', 'start', 'healthy', 'publish-service'])
        expect(of(`${kind} web`)).toMatchObject({ containerId: 'container of web' });
    } else {
      expect(specs['engine-container']).toMatchObject({
        imageId: 'sha256:1',
        networkId: 'n',
        volumeName: 'v',
        port: 5432,
      });
      for (const kind of ['engine-start', 'engine-ready']) expect(specs[kind]).toMatchObject({ containerId: 'c' });
      expect(specs['rule-file']).toMatchObject({
        generation: 1,
        profiles: [
          { name: 'local', cidrs: ['10.213.0.1/32'] },
          { name: 'private', cidrs: ['10.213.0.0/16'] },
        ],
      });
    }
  });
});

const drive = driveAny;

describe('an environment with services', () => {
  test('whose host publishes no ports any more is undone, and fails with that; nothing is thrown', () => {
    const withdrawn = (at: number): Ended =>
      driveAny('environment.create', { services: SERVICES, publishes: (boundary) => boundary < at });
    for (let at = 0; at <= WITH_SERVICES.indexOf('container web'); at += 1) {
      const ended = withdrawn(at);
      expectNothingLeft(ended);
      expect(ended.step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'ports_unavailable' } });
    }
    // Once its container is there it has its ports.
    expect(withdrawn(WITH_SERVICES.indexOf('secrets web')).step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test('is left by the engine before its network goes, also when nobody saw the engine join', () => {
    const lostJoin = (superseded: boolean): Ended =>
      driveAny('environment.create', {
        services: SERVICES,
        answer: (label) => (label === 'join-network' ? 'absent' : 'applied'),
        flags: (boundary) =>
          boundary > WITH_SERVICES.indexOf('join-network') ? { cancelRequested: true, superseded } : {},
      });
    expect(removed(lostJoin(false)).slice(0, 2)).toEqual(['leave-network', 'remove-network']);
    const { applied } = driveAny('environment.delete', { identities: lostJoin(true).identities });
    expect(applied.slice(0, 2)).toEqual(['leave-network', 'remove-network']);
  });
});

describe('a cancellation that a delete overtakes', () => {
  test('once an undo has begun it is carried to its end, so that the delete finds nothing half undone', () => {
    // Cancelled when everything but the probe is there; the delete arrives one, two, three … effects into the undo.
    for (const later of [1, 2, 3]) {
      const ended = drive('environment.create', {
        flags: (boundary) => ({ cancelRequested: boundary >= 5, superseded: boundary >= 5 + later }),
      });
      expectNothingLeft(ended);
    }
  });

  test('whatever is left to the delete, the delete removes, from what was recorded alone', () => {
    for (let at = 0; at <= CREATE_ENVIRONMENT.length; at += 1) {
      const left = drive('environment.create', {
        flags: (boundary) => (boundary >= at ? { cancelRequested: true, superseded: true } : {}),
      });
      const ended = drive('environment.delete', { identities: left.identities });
      expect(ended.identities).toEqual({});
      expect(ended.applied).toEqual(reverse(made(left)));
      expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
    }
  });
});

const COMPLETE: Identities = { roleOids, databaseOid: 16 };
const containerOf = (id: string): ServiceIdentities => ({
  containerId: `container of ${id}`,
  imageId: `sha256:${id}`,
  ports: {},
});
const COMPLETE_WITH_SERVICES: Identities = {
  ...COMPLETE,
  networkId: 'n',
  engineMayBeIn: true,
  portNetworkId: 'p',
  services: { api: containerOf('api'), web: containerOf('web') },
};
const REMOVES_SERVICES = [
  'remove-service web',
  'remove-service api',
  'leave-network',
  'remove-port-network',
  'remove-network',
] as const;

describe('environment.delete', () => {
  test.each<readonly [string, Identities, readonly Done[]]>([
    ['nothing', {}, []],
    ['roles alone', { roleOids }, ['drop-roles']],
    ['a database alone', { databaseOid: 16 }, ['retire-database', 'drop-database']],
    ['a database whose retirement is settled', { databaseOid: 16, retired: true }, ['drop-database']],
    ['everything', COMPLETE, ['retire-database', 'drop-database', 'drop-roles']],
    [
      'everything, with services',
      COMPLETE_WITH_SERVICES,
      [...REMOVES_SERVICES, 'retire-database', 'drop-database', 'drop-roles'],
    ],
    [
      'a network that the engine has left',
      { ...COMPLETE, networkId: 'n' },
      ['remove-network', 'retire-database', 'drop-database', 'drop-roles'],
    ],
    ['everything, retired', { ...COMPLETE, retired: true }, ['drop-database', 'drop-roles']],
  ])('of %s does exactly what that takes', (_what, identities, kinds) => {
    const ended = drive('environment.delete', { identities });
    expect(ended.applied).toEqual(kinds);
    expect(ended.identities).toEqual({});
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test.each(['retire-database', 'drop-database', 'drop-roles'] as const)(
    'a refused %s blocks with its reason; nothing after it is done',
    (kind) => {
      const ended = drive('environment.delete', {
        identities: COMPLETE,
        answer: (one) => (one === kind ? { refused: 'foreign_object' } : 'applied'),
      });
      expect(ended.step).toMatchObject({ do: 'block', reason: { code: 'foreign_object' } });
      expect(ended.done.at(-1)).toBe(`${kind} refused foreign_object`);
    },
  );

  test('withdraws the profile that the environment has', () => {
    const { planned } = drive('environment.delete', { identities: COMPLETE, profile: 'office' });
    expect(planned[0]).toMatchObject({ kind: 'retire-database', spec: { profiles: ['office'] } });
  });

  test.each(['retire-database', 'drop-database', 'drop-roles'] as const)('an absent %s is done again', (kind) => {
    const ended = drive('environment.delete', {
      identities: COMPLETE,
      answer: (one, nth) => (one === kind && nth < 5 ? 'absent' : 'applied'),
    });
    expect(ended.applied).toEqual(['retire-database', 'drop-database', 'drop-roles']);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test.each(REMOVES_SERVICES)(
    'a refused %s blocks with its reason, and leaves the database as it is; an absent one is done again',
    (label) => {
      const identities = COMPLETE_WITH_SERVICES;
      const ended = drive('environment.delete', {
        identities,
        answer: (one) => (one === label ? { refused: 'foreign_object' } : 'applied'),
      });
      expect(ended.step).toMatchObject({ do: 'block', reason: { code: 'foreign_object' } });
      expect(ended.identities).toMatchObject(COMPLETE);
      const again = drive('environment.delete', {
        identities,
        answer: (one, nth) => (one === label && nth < 2 ? 'absent' : 'applied'),
      });
      expect(again.identities).toEqual({});
      expect(again.step).toEqual({ do: 'finish', state: 'succeeded' });
    },
  );

  test('a request to cancel does not stop it in the middle', () => {
    const ended = drive('environment.delete', { identities: COMPLETE, flags: () => ({ cancelRequested: true }) });
    expect(ended.identities).toEqual({});
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test('given up before anything was done, it fails; given up later, it goes on: it never ends half-done', () => {
    const abandon = { code: 'interrupted_before_change', message: 'interrupted 4 times' };
    expect(drive('environment.delete', { identities: COMPLETE, flags: () => ({ abandon }) }).step).toEqual({
      do: 'finish',
      state: 'failed',
      reason: abandon,
    });
    expect(
      drive('environment.delete', {
        identities: COMPLETE,
        answer: (kind, nth) => (kind === 'retire-database' && nth === 0 ? 'absent' : 'applied'),
        flags: (boundary) => (boundary >= 1 ? { abandon } : {}),
      }).step,
    ).toMatchObject({ do: 'finish', state: 'failed' });
    for (const at of [1, 2]) {
      const ended = drive('environment.delete', {
        identities: COMPLETE,
        flags: (boundary) => (boundary >= at ? { abandon } : {}),
      });
      expect(ended.identities).toEqual({});
      expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
    }
  });
});

describe('roles that something in another database depends on (B141)', () => {
  const depends = { refused: 'dependent_objects', facts: { databaseOids: [5, 6] } } as const;
  const dropRolesOf = (answers: readonly Answer[], disowns: readonly Answer[] = []): Ended =>
    drive('environment.delete', {
      identities: { roleOids },
      answer: (kind, nth) => (kind === 'disown' ? disowns[nth] : answers[nth]) ?? 'applied',
    });

  test('are disowned in the databases that the refusal named, and then dropped', () => {
    const ended = dropRolesOf([depends]);
    expect(ended.done).toEqual(['drop-roles refused dependent_objects', 'disown applied', 'drop-roles applied']);
    expect(ended.planned[1]).toEqual({
      kind: 'disown',
      spec: { environmentId: ENVIRONMENT.id, roleOids, databaseOids: [5, 6] },
    });
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test('that keep getting new dependencies are given a bounded number of rounds, and then it blocks', () => {
    const ended = dropRolesOf(Array.from({ length: 99 }, () => depends));
    expect(ended.done).toEqual([
      'drop-roles refused dependent_objects',
      'disown applied',
      'drop-roles refused dependent_objects',
      'disown applied',
      'drop-roles refused dependent_objects',
    ]);
    expect(ended.step).toMatchObject({ do: 'block', reason: { code: 'dependent_objects' } });
  });

  test('a disown that is refused blocks with its own reason', () => {
    const ended = dropRolesOf([depends], [{ refused: 'database_closed' }]);
    expect(ended.step).toMatchObject({ do: 'block', reason: { code: 'database_closed' } });
    expect(ended.done).toHaveLength(2);
  });

  test('a disown that came to nothing is done again before the next drop', () => {
    const ended = dropRolesOf([depends], ['absent', 'absent']);
    expect(ended.done).toEqual([
      'drop-roles refused dependent_objects',
      'disown absent',
      'disown absent',
      'disown applied',
      'drop-roles applied',
    ]);
  });

  test('drops that came to nothing use up no round: only a refusal does', () => {
    const ended = dropRolesOf(['absent', 'absent', 'absent', depends, 'absent', depends]);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
    expect(ended.done.filter((line) => line === 'disown applied')).toHaveLength(2);
  });

  test('in the undo of a create they are disowned as well', () => {
    const ended = drive('environment.create', {
      answer: (kind, nth) =>
        kind === 'interior' ? { refused: 'because' } : kind === 'drop-roles' && nth === 0 ? depends : 'applied',
    });
    expect(removed(ended)).toEqual(['retire-database', 'drop-database', 'disown', 'drop-roles']);
    expect(ended.step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'because' } });
  });
});

describe('environment.start', () => {
  const identities = COMPLETE_WITH_SERVICES;
  const ALL = ['start api', 'start web'];
  const start = (run: Run = {}): Ended => driveAny('environment.start', { services: SERVICES, identities, ...run });

  test('starts exactly the containers that were recorded, in their order, and waits for none of them', () => {
    const ended = start();
    expect(ended.applied).toEqual(ALL);
    expect(ended.planned[0]).toMatchObject({
      spec: { serviceId: 'api', containerId: 'container of api', again: true },
    });
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
    expect(ended.identities).toEqual(identities);
  });

  test('one that cannot be started does not keep the others from it; it fails at the end', () => {
    const ended = start({ answer: (one) => (one === 'start api' ? { refused: 'because' } : 'applied') });
    expect(ended.applied).toEqual(['start web']);
    expect(ended.step).toEqual({
      do: 'finish',
      state: 'failed',
      reason: { code: 'because', message: 'service api: because' },
    });
    expect(ended.identities).toEqual(identities);
  });

  test('an absent effect is done again, and nothing else is', () => {
    for (const label of ALL)
      expect(start({ answer: (one, nth) => (one === label && nth < 2 ? 'absent' : 'applied') }).applied).toEqual(ALL);
  });

  test('cancelled or given up, it stops at once and removes nothing', () => {
    const abandon = { code: 'interrupted', message: 'interrupted 4 times' };
    expect(start({ flags: () => ({ cancelRequested: true }) })).toMatchObject({
      applied: [],
      step: { do: 'finish', state: 'cancelled' },
    });
    expect(start({ flags: (boundary) => (boundary >= 1 ? { abandon } : {}) })).toMatchObject({
      applied: ['start api'],
      step: { do: 'finish', state: 'failed', reason: abandon },
      identities,
    });
  });

  test('a service without a container is left out', () => {
    expect(start({ identities: { ...identities, services: { web: containerOf('web') } } }).applied).toEqual([
      'start web',
    ]);
  });
});

describe('engine.rules', () => {
  const identities: Identities = { containerId: 'c', localCidrs: ['10.213.0.1/32'] };

  test('makes the role and the next generation over the one in force', () => {
    const ended = drive('engine.rules', { identities });
    expect(ended.planned).toEqual([
      { kind: 'profile-role', spec: { engineId: ENGINE.id, profile: 'private' } },
      {
        kind: 'rule-file',
        spec: {
          engineId: ENGINE.id,
          generation: 2,
          profiles: [
            { name: 'local', cidrs: ['10.213.0.1/32'] },
            { name: 'private', cidrs: ['10.213.0.0/16'] },
          ],
          port: 5432,
          previousDigest: 'd',
        },
      },
    ]);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test.each(['profile-role', 'rule-file'] as const)(
    'a refused %s fails it, and an absent one is done again',
    (kind) => {
      const ended = drive('engine.rules', {
        identities,
        answer: (one) => (one === kind ? { refused: 'because' } : 'applied'),
      });
      expect(ended.step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'because' } });
      expect(
        drive('engine.rules', { identities, answer: (one, nth) => (one === kind && nth < 2 ? 'absent' : 'applied') })
          .step,
      ).toEqual({ do: 'finish', state: 'succeeded' });
    },
  );
});

describe('engine.start', () => {
  const identities: Identities = { containerId: 'c' };

  test('starts exactly the container that was recorded, and waits for the server in it', () => {
    const ended = drive('engine.start', { identities });
    expect(ended.planned).toEqual([
      { kind: 'engine-start', spec: { engineId: ENGINE.id, containerId: 'c' } },
      { kind: 'engine-ready', spec: { engineId: ENGINE.id, containerId: 'c' } },
    ]);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

  test.each(['engine-start', 'engine-ready'] as const)(
    'a refused %s fails it with the reason, and removes nothing',
    (kind) => {
      const ended = drive('engine.start', {
        identities,
        answer: (one) => (one === kind ? { refused: 'because' } : 'applied'),
      });
      expect(ended.step).toMatchObject({ do: 'finish', state: 'failed', reason: { code: 'because' } });
      expect(ended.identities).toEqual(identities);
    },
  );

  test('an absent start is done again', () => {
    const ended = drive('engine.start', { identities, answer: (_kind, nth) => (nth === 0 ? 'absent' : 'applied') });
    expect(ended.done).toEqual([
      'engine-start absent',
      'engine-start applied',
      'engine-ready absent',
      'engine-ready applied',
    ]);
  });

  test('given up before anything was done, it fails with the reason it was given up for', () => {
    const abandon = { code: 'interrupted_before_change', message: 'interrupted 4 times' };
    expect(drive('engine.start', { identities, flags: () => ({ abandon }) }).step).toEqual({
      do: 'finish',
      state: 'failed',
      reason: abandon,
    });
  });

  test('without a recorded container there is nothing that it could start', () => {
    expect(() => drive('engine.start')).toThrow(/containerId/);
  });
});

describe('any run of any plan', () => {
  /** Mostly applied, so that runs get far; refusals and absences anywhere. */
  const answer: fc.Arbitrary<Answer> = fc.oneof(
    { weight: 6, arbitrary: fc.constant('applied' as const) },
    { weight: 2, arbitrary: fc.constant('absent' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        { refused: 'because' },
        { refused: 'dependent_objects', facts: { databaseOids: [5] } },
      ),
    },
  );
  const never = 99;
  const script = fc.record({
    answers: fc.array(answer, { maxLength: 40 }),
    cancelAt: fc.oneof(fc.constant(never), fc.nat(25)),
    supersededAt: fc.oneof(fc.constant(never), fc.nat(25)),
    abandonAt: fc.oneof(fc.constant(never), fc.nat(25)),
  });

  test.each(['environment.create', 'environment.delete', 'engine.create', 'engine.start'] as const)(
    '%s ends or blocks, does nothing twice, and leaves nothing behind when it ends as failed or cancelled',
    (operation) => {
      fc.assert(
        fc.property(script, fc.boolean(), ({ answers, cancelAt, supersededAt, abandonAt }, withServices) => {
          const complete = withServices ? COMPLETE_WITH_SERVICES : COMPLETE;
          let asked = 0;
          const ended = drive(operation, {
            services: withServices ? SERVICES : [],
            identities:
              operation === 'environment.delete' ? complete : operation === 'engine.start' ? { containerId: 'c' } : {},
            answer: () => answers[asked++] ?? 'applied',
            flags: (boundary) => ({
              cancelRequested: boundary >= Math.min(cancelAt, supersededAt),
              superseded: boundary >= supersededAt,
              ...(boundary >= abandonAt ? { abandon: { code: 'interrupted', message: 'interrupted' } } : {}),
            }),
          });
          const { step } = ended;
          if (step.do === 'block') {
            expect(ended.done.at(-1)).toMatch(/refused/);
            return;
          }
          if (operation.endsWith('.create')) {
            if (step.state === 'succeeded')
              expect(ended.applied).toEqual(
                operation === 'engine.create' ? CREATE_ENGINE : withServices ? WITH_SERVICES : CREATE_ENVIRONMENT,
              );
            // Left to the delete, or else undone to the last thing.
            else if (supersededAt === never || step.state === 'failed')
              expectNothingLeft({ ...ended, applied: ended.applied.filter((kind) => kind !== 'disown') });
          }
          if (operation === 'environment.delete' && step.state === 'succeeded') expect(ended.identities).toEqual({});
          if (operation === 'environment.delete' && step.state === 'failed') expect(ended.identities).toEqual(complete);
        }),
        { numRuns: 300 },
      );
    },
  );
});
