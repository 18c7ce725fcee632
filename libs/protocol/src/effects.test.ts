import { describe, expect, test } from '@jest/globals';
import { EFFECT_DEADLINE_MAX_MS } from '#kernel';
import type { EffectFacts, EffectKind, Identities } from './effects.ts';
import { EFFECTS, effectTraits, identitiesAfter, isEffectKind, registeringEffects } from './effects.ts';

const KINDS = Object.keys(EFFECTS) as EffectKind[];
const roleOids = { owner: 1, door: 2, migrate: 3, app: 4, readonly: 5 };

const EVERYTHING: Identities = {
  roleOids,
  databaseOid: 6,
  retired: true,
  imageId: 'sha256:1',
  networkId: 'n',
  volumeName: 'v',
  containerId: 'c',
  localCidrs: ['10.0.0.1/32'],
  engineMayBeIn: true,
  portNetworkId: 'p',
  services: { s: { containerId: 's', imageId: 'sha256:2', ports: { 80: 20_000 } } },
};

/** What each kind that makes something leaves behind, and what each removal takes away. */
const MAKES: readonly (readonly [EffectKind, EffectFacts, Identities])[] = [
  ['roles', { roleOids }, { roleOids }],
  ['database', { databaseOid: 6 }, { databaseOid: 6 }],
  ['retire-database', {}, { retired: true }],
  ['image', { imageId: 'sha256:1' }, { imageId: 'sha256:1' }],
  ['network', { networkId: 'n', localCidrs: ['10.0.0.1/32'] }, { networkId: 'n', localCidrs: ['10.0.0.1/32'] }],
  ['volume', { volumeName: 'v' }, { volumeName: 'v' }],
  ['engine-container', { containerId: 'c' }, { containerId: 'c' }],
  ['network', { networkId: 'n' }, { networkId: 'n', engineMayBeIn: true }],
  ['port-network', { networkId: 'p' }, { portNetworkId: 'p' }],
  [
    'container',
    { serviceId: 's', containerId: 's', imageId: 'sha256:2', ports: { 80: 20_000 } },
    { services: { s: { containerId: 's', imageId: 'sha256:2', ports: { 80: 20_000 } } } },
  ],
];
const TAKES: readonly (readonly [EffectKind, readonly (keyof Identities)[]])[] = [
  ['drop-database', ['databaseOid', 'retired']],
  ['drop-roles', ['roleOids']],
  ['remove-container', ['containerId']],
  ['remove-volume', ['volumeName']],
  ['remove-network', ['networkId', 'localCidrs']],
  ['leave-network', ['engineMayBeIn']],
  ['remove-port-network', ['portNetworkId']],
  ['remove-service', ['services']],
];

describe('effect kinds', () => {
  test('a kind is one of the table, and no name that every object has', () => {
    for (const kind of KINDS) expect(isEffectKind(kind)).toBe(true);
    for (const other of ['', 'toString', '__proto__', 'Roles', 'drop']) expect(isEffectKind(other)).toBe(false);
  });

  test('no effect asks for more time than any may have', () => {
    for (const kind of KINDS) expect(effectTraits(kind).deadlineMs ?? 0).toBeLessThanOrEqual(EFFECT_DEADLINE_MAX_MS);
  });

  test('what changes an engine from inside registers its token there, and nothing else does', () => {
    expect([...registeringEffects()].sort()).toEqual([
      'database',
      'disown',
      'drop-database',
      'drop-roles',
      'interior',
      'profile-role',
      'publish-database',
      'retire-database',
      'roles',
      'rules',
    ]);
  });

  test('the roles are made from verifiers; only the probe, which logs in, is told passwords', () => {
    const needs = KINDS.flatMap((kind) =>
      effectTraits(kind).needs === undefined ? [] : [[kind, effectTraits(kind).needs]],
    );
    expect(needs).toEqual([
      ['roles', 'verifier'],
      ['probe', 'password'],
      ['secrets', 'service-files'],
      ['start', 'service-files'],
      ['healthy', 'service-files'],
      ['image', 'registry'],
    ]);
  });

  test('an undo undoes kinds that make something, and nothing undoes itself', () => {
    for (const kind of KINDS)
      for (const undone of effectTraits(kind).undoes ?? []) {
        expect(KINDS).toContain(undone);
        expect(effectTraits(undone).undoes).toBeUndefined();
      }
  });
});

describe('identities', () => {
  test('a service is added beside the others, and only it is taken away; an image for a service is nobody’s', () => {
    const other = { containerId: 't', imageId: 'sha256:3', ports: {} };
    const both = identitiesAfter(EVERYTHING, 'container', { serviceId: 't', ...other });
    expect(both.services).toEqual({ ...EVERYTHING.services, t: other });
    expect(identitiesAfter(both, 'remove-service', { serviceId: 's' }).services).toEqual({ t: other });
    expect(identitiesAfter({}, 'image', { serviceId: 's', imageId: 'sha256:4' })).toEqual({});
  });

  test.each(MAKES)('an applied %s is remembered by what it reported', (kind, facts, expected) => {
    expect(identitiesAfter({}, kind, facts)).toEqual(expected);
  });

  test.each(TAKES)('an applied %s takes away its own identities and no other', (kind, gone) => {
    const rest = Object.fromEntries(
      Object.entries(EVERYTHING).filter(([key]) => !gone.includes(key as keyof Identities)),
    );
    expect(identitiesAfter(EVERYTHING, kind, { serviceId: 's' })).toEqual(rest);
  });

  test('every other kind leaves the identities as they are', () => {
    const speaking = new Set([...MAKES, ...TAKES].map(([kind]) => kind));
    for (const kind of KINDS.filter((one) => !speaking.has(one))) {
      expect(identitiesAfter(EVERYTHING, kind, { roleOids: 'other' })).toEqual(EVERYTHING);
      expect(identitiesAfter({}, kind, {})).toEqual({});
    }
  });

  test('what an identity was recorded for is removed by exactly one kind of effect', () => {
    const removed = TAKES.flatMap(([, keys]) => keys);
    expect(new Set(removed).size).toBe(removed.length);
    // An image stays: others may use it.
    expect([...removed, 'imageId'].sort()).toEqual(Object.keys(EVERYTHING).sort());
  });
});
