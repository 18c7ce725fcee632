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
};
const ENGINE: EngineSubject = {
  type: 'engine',
  id: '22222222-2222-4222-8222-222222222222',
  name: 'main',
  image: 'postgres:17',
  port: 5432,
  networkPool: '10.213.0.0/16',
  identities: {},
};

const roleOids = { owner: 11, door: 12, migrate: 13, app: 14, readonly: 15 };
const FACTS: Partial<Record<EffectKind, EffectFacts>> = {
  roles: { roleOids },
  database: { databaseOid: 16 },
  image: { imageId: 'sha256:1' },
  network: { networkId: 'n', localCidrs: ['10.213.0.1/32'] },
  volume: { volumeName: 'v' },
  'engine-container': { containerId: 'c' },
};

const CREATE_ENVIRONMENT = ['roles', 'database', 'interior', 'publish-database', 'rules', 'probe'] as const;
const CREATE_ENGINE = [
  'engine-files',
  'image',
  'network',
  'volume',
  'engine-container',
  'engine-start',
  'engine-ready',
  'rule-file',
] as const;
const FORWARD: readonly EffectKind[] = [...CREATE_ENVIRONMENT, ...CREATE_ENGINE];

/** For each kind that makes something that an undo removes: how it is removed, in order. */
const REMOVALS: Partial<Record<EffectKind, readonly EffectKind[]>> = {
  roles: ['drop-roles'],
  database: ['retire-database', 'drop-database'],
  network: ['remove-network'],
  volume: ['remove-volume'],
  'engine-container': ['remove-container'],
  'engine-files': ['remove-engine-files'],
};

type Answer = 'applied' | 'absent' | { readonly refused: string; readonly facts?: EffectFacts };
interface Flags {
  readonly cancelRequested?: boolean;
  readonly superseded?: boolean;
  readonly abandon?: Reason;
}
interface Run {
  /** @param nth how often this kind has been done before in this operation */
  readonly answer?: (kind: EffectKind, nth: number) => Answer;
  /** Set from this boundary on: before the effect with this ordinal, from 0. */
  readonly flags?: (boundary: number) => Flags;
  readonly identities?: Identities;
  readonly profile?: string;
}

interface Ended {
  readonly step: Exclude<Step, { do: 'effect' }>;
  /** Kinds in the order in which they were done, and what came of each. */
  readonly done: readonly string[];
  readonly applied: readonly EffectKind[];
  readonly effects: readonly EffectRecord[];
  readonly identities: Identities;
  readonly planned: readonly PlannedEffect[];
}

const BOUND = 60;

/** Record, answer, settle, until the plan ends or blocks; what the catalog does in between is done here as it does it. */
function drive(kind: OperationKind, run: Run = {}): Ended {
  const start: EnvironmentSubject | EngineSubject = kind.startsWith('environment')
    ? { ...ENVIRONMENT, profile: run.profile ?? ENVIRONMENT.profile }
    : ENGINE;
  let identities = run.identities ?? {};
  let effects: readonly EffectRecord[] = [];
  let flags: Flags = {};
  const applied: EffectKind[] = [];
  const planned: PlannedEffect[] = [];
  const situation = (): Situation => ({
    subject: { ...start, identities },
    effects,
    cancelRequested: flags.cancelRequested ?? false,
    superseded: flags.superseded ?? false,
    ...(flags.abandon === undefined ? {} : { abandon: flags.abandon }),
  });
  for (let boundary = 0; boundary < BOUND; boundary += 1) {
    flags = { ...flags, ...run.flags?.(boundary) };
    const step = nextStep(kind, situation());
    if (step.do !== 'effect') {
      // Asked once more, as after a lost reply: the same end, and nothing to do.
      expect(nextStep(kind, situation())).toEqual(step);
      const done = effects.map((record) => `${record.kind} ${settledAs(record)}`);
      return { step, done, applied, effects, identities, planned };
    }
    const { effect } = step;
    planned.push(effect);
    expectNotInForce(effect.kind, effects);
    const answer =
      run.answer?.(effect.kind, effects.filter((record) => record.kind === effect.kind).length) ?? 'applied';
    if (answer === 'applied') {
      applied.push(effect.kind);
      const facts = FACTS[effect.kind] ?? {};
      identities = identitiesAfter(identities, effect.kind, facts);
      const undone = effectTraits(effect.kind).undoes ?? [];
      effects = effects.map((record) =>
        undone.includes(record.kind) && record.outcome === 'applied' ? { ...record, outcome: 'undone' } : record,
      );
      effects = [...effects, { kind: effect.kind, outcome: 'applied', facts }];
    } else if (answer === 'absent') effects = [...effects, { kind: effect.kind, outcome: 'absent', facts: {} }];
    else
      effects = [
        ...effects,
        {
          kind: effect.kind,
          outcome: 'refused',
          facts: answer.facts ?? {},
          reason: { code: answer.refused, message: answer.refused },
        },
      ];
  }
  throw new Error(`the plan has not ended after ${BOUND} effects: ${effects.map((record) => record.kind).join(', ')}`);
}

function settledAs(record: EffectRecord): string {
  return record.outcome === 'refused' ? `refused ${record.reason?.code ?? ''}` : record.outcome;
}

/** Making something that stands, and removing it a second time, are both the double effect that must never be. */
function expectNotInForce(kind: EffectKind, effects: readonly EffectRecord[]): void {
  // A disown round and the drop after it may come again; that is their purpose.
  if (kind === 'disown') return;
  expect(effects.filter((record) => record.kind === kind && record.outcome === 'applied')).toEqual([]);
  if (FORWARD.includes(kind))
    expect(effects.filter((record) => record.outcome === 'undone' || !FORWARD.includes(record.kind))).toEqual([]);
}

/** What removing `made` takes, last made first. */
function reverse(made: readonly EffectKind[]): readonly EffectKind[] {
  return [...made].reverse().flatMap((kind) => REMOVALS[kind] ?? []);
}

const made = (ended: Ended): readonly EffectKind[] => ended.applied.filter((kind) => FORWARD.includes(kind));
const removed = (ended: Ended): readonly EffectKind[] => ended.applied.filter((kind) => !FORWARD.includes(kind));
const withoutImage = ({ imageId: _stays, ...rest }: Identities): Identities => rest;

function expectNothingLeft(ended: Ended): void {
  expect(withoutImage(ended.identities)).toEqual({});
  expect(removed(ended)).toEqual(reverse(made(ended)));
}

const CREATES = [
  ['environment.create', CREATE_ENVIRONMENT],
  ['engine.create', CREATE_ENGINE],
] as const;

describe.each(CREATES)('%s', (operation, kinds) => {
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
      expect(made(ended)).toEqual(kinds.slice(0, (kinds as readonly EffectKind[]).indexOf(kind)));
      expectNothingLeft(ended);
      expect(ended.step).toEqual({ do: 'finish', state: 'failed', reason: { code: 'because', message: 'because' } });
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
    if (operation === 'environment.create') {
      expect(specs['roles']).toEqual({ environmentId: ENVIRONMENT.id, names: ENVIRONMENT.names, connectionLimit: 20 });
      expect(specs['database']).toEqual({ environmentId: ENVIRONMENT.id });
      for (const kind of ['interior', 'publish-database', 'probe'])
        expect(specs[kind]).toMatchObject({ databaseOid: 16 });
      expect(specs['rules']).toMatchObject({ profile: 'local' });
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
        profiles: [{ name: 'local', cidrs: ['10.213.0.1/32'] }],
      });
    }
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

describe('environment.delete', () => {
  test.each<readonly [string, Identities, readonly EffectKind[]]>([
    ['nothing', {}, []],
    ['roles alone', { roleOids }, ['drop-roles']],
    ['a database alone', { databaseOid: 16 }, ['retire-database', 'drop-database']],
    ['a database whose retirement is settled', { databaseOid: 16, retired: true }, ['drop-database']],
    ['everything', COMPLETE, ['retire-database', 'drop-database', 'drop-roles']],
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
    expect(planned[0]).toMatchObject({ kind: 'retire-database', spec: { profile: 'office' } });
  });

  test.each(['retire-database', 'drop-database', 'drop-roles'] as const)('an absent %s is done again', (kind) => {
    const ended = drive('environment.delete', {
      identities: COMPLETE,
      answer: (one, nth) => (one === kind && nth < 5 ? 'absent' : 'applied'),
    });
    expect(ended.applied).toEqual(['retire-database', 'drop-database', 'drop-roles']);
    expect(ended.step).toEqual({ do: 'finish', state: 'succeeded' });
  });

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
    answers: fc.array(answer, { maxLength: 25 }),
    cancelAt: fc.oneof(fc.constant(never), fc.nat(15)),
    supersededAt: fc.oneof(fc.constant(never), fc.nat(15)),
    abandonAt: fc.oneof(fc.constant(never), fc.nat(15)),
  });

  test.each(['environment.create', 'environment.delete', 'engine.create', 'engine.start'] as const)(
    '%s ends or blocks, does nothing twice, and leaves nothing behind when it ends as failed or cancelled',
    (operation) => {
      fc.assert(
        fc.property(script, ({ answers, cancelAt, supersededAt, abandonAt }) => {
          let asked = 0;
          const ended = drive(operation, {
            identities:
              operation === 'environment.delete' ? COMPLETE : operation === 'engine.start' ? { containerId: 'c' } : {},
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
              expect(ended.applied).toEqual(operation === 'environment.create' ? CREATE_ENVIRONMENT : CREATE_ENGINE);
            // Left to the delete, or else undone to the last thing.
            else if (supersededAt === never || step.state === 'failed')
              expectNothingLeft({ ...ended, applied: ended.applied.filter((kind) => kind !== 'disown') });
          }
          if (operation === 'environment.delete' && step.state === 'succeeded') expect(ended.identities).toEqual({});
          if (operation === 'environment.delete' && step.state === 'failed') expect(ended.identities).toEqual(COMPLETE);
        }),
        { numRuns: 300 },
      );
    },
  );
});
