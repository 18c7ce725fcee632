/**
 * Recovery as the worker runs it, on a real catalog and real record files: every row of the table in docs/PROTOCOL.md, and
 * the bound on interruptions. What the engine knows is the one answer that is made up here.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Claim, EffectToRecord } from '#catalog';
import { CatalogFateUnknown, CatalogUnavailable, liveClaim, requeueOperation } from '#catalog';
import { EngineAway } from '#engines';
import type { Logger } from '#kernel';
import { PREFLIGHT_INTERRUPTIONS_MAX, STALLED_RESUMES_MAX } from '#kernel';
import type { EffectKind, OperationKind, Receipt, Witness } from '#protocol';
import { RECORD_VERSION } from '#protocol';
import { RecordFolders, UnreadableRecord, writeEpoch } from '#receipts';
import { homePaths } from '#settings';
import { waitUntil } from '#testing';
import { boundary, newIds } from '../../apps/worker/src/operate.ts';
import { Stopped } from '../../apps/worker/src/persistently.ts';
import { Places } from '../../apps/worker/src/places.ts';
import type { RecoverParts } from '../../apps/worker/src/recover.ts';
import { giveBack, ReceiptUnexplained, recover } from '../../apps/worker/src/recover.ts';
import { recoverPatiently } from '../../apps/worker/src/start-up.ts';
import { settings } from './catalog-server.ts';
import type { Queued, Row } from './catalog-world.ts';
import { CatalogWorld } from './catalog-world.ts';

const SILENT: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

let world: CatalogWorld;
let home: string;
let records: RecordFolders;
/** What the engine answers when it is asked how many of some tokens it knows. */
let knownTokens: RecoverParts['countKnownTokens'];

beforeAll(async () => {
  world = await CatalogWorld.make();
});
afterAll(() => world.remove());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'recovery-'));
  for (const folder of ['receipts', 'witnesses'] as const) mkdirSync(homePaths(home)[folder], { recursive: true });
  records = new RecordFolders(homePaths(home));
  knownTokens = () => Promise.resolve(0);
});
/** Each test begins with a host that nobody has claimed, and that is not refused. */
afterEach(async () => {
  rmSync(home, { recursive: true });
  await world.database.query('update claims set ended_at = now() where ended_at is null');
  await world.database.query('update hosts set refusal = null');
  await world.database.query('update cases set closed_at = now() where closed_at is null');
});

const parts = (): RecoverParts => ({
  hostId: world.hostId,
  catalog: world.catalog,
  records,
  log: SILENT,
  countKnownTokens: (engineId, tokens) => knownTokens(engineId, tokens),
});
const places = (): Places => new Places(world.catalog, { ...settings, home, paths: homePaths(home) }, SILENT);

/** As the worker does it: the catalog knows the claim's number first, then the host. */
async function claimed(job: Queued): Promise<Claim> {
  const claim = await world.claimed(job);
  const { identity } = await world.one('select identity from hosts where id = $1', [world.hostId]);
  writeEpoch(homePaths(home).epoch, { identity: identity as string, claimNumber: claim.claimNumber });
  return claim;
}

interface Begun extends Queued {
  readonly claim: Claim;
  readonly effect: EffectToRecord;
}

async function recordedEffect(
  kind: EffectKind = 'roles',
  operation: OperationKind = 'environment.create',
): Promise<Begun> {
  const job = await world.queued(operation);
  const claim = await claimed(job);
  return { ...job, claim, effect: await world.recorded(claim, kind) };
}

function publishReceipt({ claim, effect }: Pick<Begun, 'claim' | 'effect'>, changes: Partial<Receipt> = {}): void {
  records.publishReceipt({
    version: RECORD_VERSION,
    installation: settings.installation,
    host: world.hostId,
    jobId: claim.jobId,
    operationId: claim.operationId,
    claimId: claim.claimId,
    attempt: claim.attempt,
    claimNumber: claim.claimNumber,
    effectId: effect.effectId,
    kind: effect.kind,
    resource: effect.resource,
    token: effect.token,
    createdAt: new Date().toISOString(),
    ...changes,
  });
}

function publishWitness({ claim, effect }: Pick<Begun, 'claim' | 'effect'>, changes: Partial<Witness> = {}): void {
  records.publishWitness({
    version: RECORD_VERSION,
    claimId: claim.claimId,
    effectId: effect.effectId,
    token: effect.token,
    outcome: 'applied',
    facts: {},
    createdAt: new Date().toISOString(),
    ...changes,
  });
}

async function begun(kind: EffectKind = 'roles', operation: OperationKind = 'environment.create'): Promise<Begun> {
  const found = await recordedEffect(kind, operation);
  publishReceipt(found);
  return found;
}

const onDisk = (): readonly string[] =>
  (['receipts', 'witnesses'] as const).flatMap((folder) => readdirSync(homePaths(home)[folder]));
const hostRefusal = async (): Promise<unknown> =>
  (await world.one('select refusal from hosts where id = $1', [world.hostId]))['refusal'];
const casesOf = ({ operationId }: Queued): Promise<readonly Row[]> =>
  world.database.query<Row>(
    'select kind, effect_id, evidence from cases where operation_id = $1 and closed_at is null',
    [operationId],
  );
const interruptionsOf = async ({ operationId }: Queued): Promise<Row> =>
  world.one('select preflight_interruptions as preflight, stalled_resumes as stalled from operations where id = $1', [
    operationId,
  ]);

/** Nothing of it was judged: it is as its worker left it. */
async function expectUntouched({ claim, effect, operationId }: Begun): Promise<void> {
  expect(await world.effect(effect.effectId)).toMatchObject({
    outcome: 'pending',
    settled_at: null,
    token_settled_at: null,
  });
  expect(await world.operation(operationId)).toMatchObject({ state: 'running', claim_id: claim.claimId });
  expect(await liveClaim(world.catalog, world.hostId)).toMatchObject({ claimId: claim.claimId });
}

describe('a receipt, and the catalog has the outcome', () => {
  test.each(['applied', 'refused', 'absent', 'undone'])('%s: only the consuming is made up for', async (outcome) => {
    const found = await begun();
    publishWitness(found, { outcome: 'refused', facts: { another: 'word' } });
    await world.database.query(`update effects set outcome = $2, settled_at = now() where id = $1`, [
      found.effect.effectId,
      outcome,
    ]);
    await world.database.query('update tokens set settled_at = now() where token = $1', [found.effect.token]);
    const before = await world.effect(found.effect.effectId);
    await recover(parts());
    expect(onDisk()).toEqual([]);
    expect(await world.effect(found.effect.effectId)).toEqual(before);
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued', claim_id: null });
  });
});

describe('a receipt and its witness', () => {
  test('applied: settled whole, with facts and identities, consumed, and the operation goes on behind it', async () => {
    const found = await begun('database');
    publishWitness(found, { facts: { databaseOid: 77 } });
    await recover(parts());
    expect(onDisk()).toEqual([]);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'applied', facts: { databaseOid: 77 } });
    expect(await world.one('select identities from environments where id = $1', [found.environmentId])).toEqual({
      identities: { databaseOid: 77 },
    });
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued', claim_id: null });
    expect(await interruptionsOf(found)).toEqual({ preflight: 0, stalled: 0 });
    expect(await liveClaim(world.catalog, world.hostId)).toBeUndefined();
  });

  test('refused: settled with its reason, and leaves no identities', async () => {
    const found = await begun('database');
    const reason = { code: 'disk_full', message: 'no space' };
    publishWitness(found, { outcome: 'refused', reason });
    await recover(parts());
    expect(onDisk()).toEqual([]);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'refused', reason });
    expect(await world.one('select identities from environments where id = $1', [found.environmentId])).toEqual({
      identities: {},
    });
  });

  test('whose outcome the catalog does not take, since the claim has ended meanwhile: the receipt stays, and the host is refused', async () => {
    const found = await begun();
    publishWitness(found);
    await world.catalog.transaction((tx) => requeueOperation(tx, found.claim, 'none', 0));
    await expect(recover(parts())).rejects.toThrow(ReceiptUnexplained);
    expect(onDisk()).toHaveLength(2);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'pending', settled_at: null });
  });
});

/** Said here once more, kind by kind: a new kind has to say what a lost outcome means for it. */
const WITHOUT_WITNESS: Readonly<Record<EffectKind, 'block' | 'repeat'>> = {
  roles: 'block',
  database: 'block',
  interior: 'block',
  'publish-database': 'block',
  rules: 'block',
  probe: 'repeat',
  'retire-database': 'block',
  'drop-database': 'repeat',
  disown: 'repeat',
  'drop-roles': 'block',
  'join-network': 'repeat',
  'leave-network': 'repeat',
  'port-network': 'block',
  'remove-port-network': 'repeat',
  container: 'block',
  secrets: 'repeat',
  start: 'repeat',
  healthy: 'repeat',
  'publish-service': 'repeat',
  'remove-service': 'repeat',
  'profile-role': 'block',
  'engine-files': 'block',
  image: 'repeat',
  network: 'block',
  volume: 'block',
  'engine-container': 'block',
  'engine-start': 'repeat',
  'engine-ready': 'repeat',
  'rule-file': 'block',
  'remove-container': 'repeat',
  'remove-volume': 'repeat',
  'remove-network': 'repeat',
  'remove-engine-files': 'repeat',
};
const kindsThat = (way: 'block' | 'repeat'): readonly EffectKind[] =>
  (Object.keys(WITHOUT_WITNESS) as EffectKind[]).filter((kind) => WITHOUT_WITNESS[kind] === way);

describe('a receipt without a witness', () => {
  test.each(kindsThat('block'))(
    '%s: blocks with a case and keeps the receipt, and stays so at each later start',
    async (kind) => {
      const found = await begun(kind);
      for (let start = 0; start < 2; start += 1) {
        await recover(parts());
        expect(onDisk()).toEqual([`${found.effect.effectId}.json`]);
        expect(await world.effect(found.effect.effectId)).toMatchObject({
          outcome: 'unknown',
          settled_at: null,
          token_settled_at: null,
        });
        expect(await world.operation(found.operationId)).toMatchObject({
          state: 'blocked',
          reason: { code: 'outcome_unknown' },
        });
        expect(await world.one('select state from environments where id = $1', [found.environmentId])).toEqual({
          state: 'blocked',
        });
        expect(await casesOf(found)).toMatchObject([
          {
            kind: 'outcome_unknown',
            effect_id: found.effect.effectId,
            evidence: { receipt: { token: found.effect.token } },
          },
        ]);
      }
      // The rest of the host goes on.
      expect(await liveClaim(world.catalog, world.hostId)).toBeUndefined();
      expect(await hostRefusal()).toBeNull();
    },
  );

  test.each(kindsThat('repeat'))('%s: settled as absent, consumed, and made again', async (kind) => {
    const found = await begun(kind);
    await recover(parts());
    expect(onDisk()).toEqual([]);
    const settled = await world.effect(found.effect.effectId);
    expect(settled).toMatchObject({ outcome: 'absent', facts: {} });
    expect(settled['token_settled_at']).not.toBeNull();
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued', claim_id: null });
    // Absence changes nothing that is known of the environment, and is no progress.
    expect(await world.one('select identities from environments where id = $1', [found.environmentId])).toEqual({
      identities: {},
    });
    expect(await interruptionsOf(found)).toEqual({ preflight: 1, stalled: 0 });
    expect((await world.claimed(found)).attempt).toBe(2);
  });
});

describe('a contradiction', () => {
  test.each<[string, (found: Begun) => void]>([
    ['the receipt names another token', (found) => publishReceipt(found, { token: randomUUID() })],
    [
      'the receipt names another token, and its witness too',
      (found) => {
        const token = randomUUID();
        publishReceipt(found, { token });
        publishWitness(found, { token });
      },
    ],
    [
      'the witness names another token',
      (found) => {
        publishReceipt(found);
        publishWitness(found, { token: randomUUID() });
      },
    ],
    [
      'the witness names another claim',
      (found) => {
        publishReceipt(found);
        publishWitness(found, { claimId: randomUUID() });
      },
    ],
  ])('%s: blocked, everything kept, at the next start too', async (_what, contradict) => {
    for (const outcome of ['pending', 'applied'])
      for (const kind of ['roles', 'probe'] as const) {
        const found = await recordedEffect(kind);
        contradict(found);
        await world.database.query('update effects set outcome = $2 where id = $1', [found.effect.effectId, outcome]);
        const files = onDisk();
        for (let start = 0; start < 2; start += 1) {
          await recover(parts());
          expect(onDisk()).toEqual(files);
          expect(await world.effect(found.effect.effectId)).toMatchObject({
            outcome: outcome === 'pending' ? 'unknown' : outcome,
            settled_at: null,
          });
          const { state, reason } = await world.operation(found.operationId);
          expect([state, (reason as { code: string }).code]).toEqual([
            'blocked',
            expect.stringMatching(/_contradicts$/),
          ]);
          expect(await casesOf(found)).toHaveLength(1);
        }
      }
  });

  test.each<[string, (found: Begun) => void]>([
    ['no witness', () => undefined],
    ['a witness of its own', (found) => publishWitness(found)],
  ])(
    'the receipt names another claim than the catalog, with %s: the host is refused, and the live claim is never taken for unstarted',
    async (_what, witness) => {
      for (const kind of ['roles', 'probe'] as const) {
        const found = await recordedEffect(kind);
        const another = { ...found, claim: { ...found.claim, claimId: randomUUID() } };
        publishReceipt(another);
        witness(another);
        const files = onDisk();
        for (let start = 0; start < 2; start += 1) {
          await expect(recover(parts())).rejects.toThrow(ReceiptUnexplained);
          await expectUntouched(found);
          expect(onDisk()).toEqual(files);
        }
        await world.database.query('update claims set ended_at = now() where ended_at is null');
        records.consume(found.effect.effectId);
      }
    },
  );

  test('the receipt names an earlier claim of the same operation: refused in the same way', async () => {
    const job = await world.queued();
    const earlier = await claimed(job);
    await world.catalog.transaction((tx) => requeueOperation(tx, earlier, 'none', 0));
    const claim = await claimed(job);
    const found = { ...job, claim, effect: await world.recorded(claim) };
    publishReceipt({ ...found, claim: earlier });
    await expect(recover(parts())).rejects.toThrow(ReceiptUnexplained);
    await expectUntouched(found);
    expect(onDisk()).toHaveLength(1);
  });

  test('a token that the engine knows, and no receipt: blocked, never absent', async () => {
    const found = await recordedEffect();
    knownTokens = (engineId, tokens) => {
      expect([engineId, tokens]).toEqual([world.engineId, [found.effect.token]]);
      return Promise.resolve(1);
    };
    await recover(parts());
    const effect = await world.effect(found.effect.effectId);
    expect(effect['outcome']).not.toBe('absent');
    expect(effect).toMatchObject({ settled_at: null, token_settled_at: null });
    expect(await world.operation(found.operationId)).toMatchObject({
      state: 'blocked',
      reason: { code: 'token_without_receipt' },
    });
    expect(await casesOf(found)).toMatchObject([
      { kind: 'token_without_receipt', evidence: { tokens: [found.effect.token] } },
    ]);
  });
});

describe('a claim without a receipt', () => {
  test('a recorded effect never started: absent, its token settled, requeued and counted', async () => {
    const found = await recordedEffect('publish-database');
    await recover(parts());
    const effect = await world.effect(found.effect.effectId);
    expect(effect).toMatchObject({ outcome: 'absent' });
    expect(effect['token_settled_at']).not.toBeNull();
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued', claim_id: null });
    expect(await interruptionsOf(found)).toEqual({ preflight: 1, stalled: 0 });
    expect(await world.count('outbox', `message->>'jobId' = $1`, [found.jobId])).toBe(1);
  });

  test('nothing was recorded yet: requeued, and no engine is asked', async () => {
    const job = await world.queued();
    await claimed(job);
    knownTokens = () => Promise.reject(new EngineAway('asked'));
    await recover(parts());
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'queued', claim_id: null });
  });

  test('of a clean stop: requeued, and not counted', async () => {
    const found = await recordedEffect();
    await giveBack(parts(), found.claim, true);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'absent' });
    expect(await interruptionsOf(found)).toEqual({ preflight: 0, stalled: 0 });
  });

  test('no claim and no receipt: nothing is done', async () => {
    const job = await world.queued();
    await recover(parts());
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'queued', attempt: 0 });
  });
});

/** Runs as long as what it waits for is there; `cure` then takes it away, and recovery has to go on by itself. */
async function expectToWaitUntil(cure: () => unknown, whileWaiting: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const warned: unknown[] = [];
  const log: Logger = { ...SILENT, warn: (_message, fields) => void warned.push(fields?.['detail']) };
  const running = recoverPatiently({ ...parts(), log }, places(), stop.signal);
  try {
    await waitUntil('it tells what it waits for', () => warned.length > 0);
    await whileWaiting();
    await cure();
    await running;
    // Said once, however often it was met.
    expect(new Set(warned).size).toBe(warned.length);
  } finally {
    stop.abort();
    await running.catch(() => undefined);
  }
}

describe('what nothing can be judged by', () => {
  const spoil: readonly [string, (path: string) => void][] = [
    ['empty', (path) => writeFileSync(path, '')],
    ['cut short', (path) => writeFileSync(path, readFileSync(path).subarray(0, -20))],
    [
      'of a later version',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":9')),
    ],
    ['with one letter changed', (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('engine', 'engina'))],
  ];

  test.each(spoil)(
    'a receipt that is %s: nothing on the host is judged, its own claim’s included',
    async (_what, spoiled) => {
      const found = await recordedEffect();
      // One that alone would be consumed, of an operation that is over.
      const settled = { ...found, effect: { ...found.effect, effectId: randomUUID(), token: randomUUID() } };
      publishReceipt(found);
      publishReceipt(settled);
      spoiled(join(homePaths(home).receipts, `${found.effect.effectId}.json`));
      await expect(recover(parts())).rejects.toThrow(UnreadableRecord);
      await expectUntouched(found);
      expect(onDisk()).toHaveLength(2);
    },
  );

  test('a witness that cannot be read: its receipt is not taken for one without', async () => {
    for (const kind of ['roles', 'probe'] as const) {
      const found = await begun(kind);
      publishWitness(found);
      const path = join(homePaths(home).witnesses, `${found.effect.effectId}.json`);
      writeFileSync(path, readFileSync(path).subarray(0, 40));
      await expect(recover(parts())).rejects.toThrow(UnreadableRecord);
      await expectUntouched(found);
      await world.database.query('update claims set ended_at = now() where ended_at is null');
      records.consume(found.effect.effectId);
    }
  });

  test('a receipt that was never finished is none: its temporary file goes', async () => {
    const found = await recordedEffect();
    publishReceipt(found);
    const path = join(homePaths(home).receipts, `${found.effect.effectId}.json`);
    const text = readFileSync(path);
    rmSync(path);
    writeFileSync(join(homePaths(home).receipts, '.writing-1'), text.subarray(0, 30));
    await recover(parts());
    expect(onDisk()).toEqual([]);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'absent' });
  });
});

describe('waiting, at start', () => {
  test('an unreadable record: the host is refused with a case, and goes on by itself once the right file is back', async () => {
    const found = await begun();
    publishWitness(found, { outcome: 'refused' });
    const path = join(homePaths(home).receipts, `${found.effect.effectId}.json`);
    const right = readFileSync(path);
    writeFileSync(path, 'torn');
    await expectToWaitUntil(
      () => writeFileSync(path, right),
      async () => {
        await expectUntouched(found);
        expect(await hostRefusal()).toMatchObject({ code: 'unreadable_record' });
      },
    );
    expect(await hostRefusal()).toBeNull();
    expect(await world.count('cases', 'closed_at is null')).toBe(0);
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'refused' });
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued' });
  });

  test('a receipt that the catalog does not know: refused, kept, and the claim beside it is not judged', async () => {
    const found = await recordedEffect();
    const strange = { ...found, effect: world.toRecord(found.claim) };
    publishReceipt(strange);
    publishWitness(strange);
    await expectToWaitUntil(
      () => records.consume(strange.effect.effectId),
      async () => {
        await expectUntouched(found);
        expect(onDisk()).toHaveLength(2);
        expect(await hostRefusal()).toMatchObject({ message: expect.stringContaining(strange.effect.effectId) });
      },
    );
    expect(await hostRefusal()).toBeNull();
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'absent' });
  });

  test('a receipt of another claim: refused with a case for as long as it is there', async () => {
    const found = await recordedEffect();
    publishReceipt({ ...found, claim: { ...found.claim, claimId: randomUUID() } });
    await expectToWaitUntil(
      () => records.consume(found.effect.effectId),
      async () => {
        await expectUntouched(found);
        expect(await hostRefusal()).not.toBeNull();
        expect(await world.count('cases', 'closed_at is null and operation_id is null')).toBe(1);
      },
    );
    expect(await hostRefusal()).toBeNull();
  });

  test.each<[string, Error]>([
    ['the engine is away', new EngineAway('connection refused')],
    ['the catalog is away', new CatalogUnavailable('connection refused')],
    ['the fate of a commit is not known', new CatalogFateUnknown('7')],
  ])('%s: nothing is settled until it is back', async (_what, error) => {
    const found = await recordedEffect();
    knownTokens = () => Promise.reject(error);
    await expectToWaitUntil(
      () => (knownTokens = () => Promise.resolve(0)),
      async () => {
        await expectUntouched(found);
        expect(await hostRefusal()).toBeNull();
      },
    );
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'absent' });
    expect(await world.operation(found.operationId)).toMatchObject({ state: 'queued' });
  });

  test('a state folder of another age: nothing that is missing counts as absent', async () => {
    const found = await recordedEffect();
    const { epoch } = homePaths(home);
    const right = readFileSync(epoch);
    writeEpoch(epoch, {
      identity: (await world.one('select identity from hosts'))['identity'] as string,
      claimNumber: found.claim.claimNumber + 1,
    });
    await expectToWaitUntil(
      () => writeFileSync(epoch, right),
      async () => {
        await expectUntouched(found);
        expect(await hostRefusal()).toMatchObject({ code: 'age' });
      },
    );
    expect(await world.effect(found.effect.effectId)).toMatchObject({ outcome: 'absent' });
  });

  test('a stop ends the waiting, and leaves everything as it was', async () => {
    const found = await recordedEffect();
    knownTokens = () => Promise.reject(new EngineAway('connection refused'));
    const stop = new AbortController();
    const running = recoverPatiently(parts(), places(), stop.signal);
    stop.abort();
    await expect(running).rejects.toThrow(Stopped);
    await expectUntouched(found);
  });

  test('an error that nothing here knows is not waited for', async () => {
    await recordedEffect();
    knownTokens = () => Promise.reject(new TypeError('a fault of ours'));
    await expect(recoverPatiently(parts(), places(), new AbortController().signal)).rejects.toThrow('a fault of ours');
  });
});

/**
 * Ways in which one claim is interrupted. `unstarted`: between record and receipt. `lost`: between receipt and witness.
 * `applied`, `refused`: between witness and settle.
 */
type Interruption = 'unstarted' | 'lost' | 'applied' | 'refused';

const FACTS: Partial<Record<EffectKind, Witness['facts']>> = {
  roles: { roleOids: { owner: 1, door: 2, migrate: 3, app: 4, readonly: 5 } },
  database: { databaseOid: 9 },
};

/** One claim that ends with an interruption, and the recovery after it. @returns whether the operation is open still */
async function interrupted(job: Queued, how: Interruption): Promise<boolean> {
  const claim = await claimed(job);
  const first = await world.catalog.transaction((tx) => boundary(tx, { log: SILENT }, claim, newIds()));
  if (first === 'lost') throw new Error('a boundary of the live claim was lost');
  if (first !== 'ended') {
    const { kind } = first.planned;
    const found = { claim, effect: { ...world.toRecord(claim, kind), effectId: first.effectId, token: first.token } };
    if (how !== 'unstarted') publishReceipt(found);
    if (how === 'applied') publishWitness(found, { facts: FACTS[kind] ?? {} });
    if (how === 'refused') publishWitness(found, { outcome: 'refused', reason: { code: 'no', message: 'no' } });
  }
  await recover(parts());
  const { state } = await world.operation(job.operationId);
  return state === 'queued';
}

/** The same for ever. @returns how many claims there were until it ended or blocked */
async function claimsUntilTheEnd(job: Queued, how: (claim: number) => Interruption): Promise<number> {
  for (let claim = 1; claim < 150; claim += 1) if (!(await interrupted(job, how(claim)))) return claim;
  throw new Error('no end is in sight');
}

describe('an operation that is interrupted again and again (invariant 8)', () => {
  const way = fc.constantFrom<Interruption>(
    'unstarted',
    'unstarted',
    'unstarted',
    'applied',
    'applied',
    'applied',
    'lost',
    'refused',
  );

  test.each(['environment.create', 'environment.delete'] as const)(
    '%s, however it is interrupted: ends or blocks, after no more claims than its bounds allow',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(fc.array(way, { minLength: 1, maxLength: 12 }), async (ways) => {
          const job = await world.queued(kind);
          if (kind === 'environment.delete')
            await world.database.query('update environments set identities = $2 where id = $1', [
              job.environmentId,
              JSON.stringify({ ...FACTS['roles'], ...FACTS.database }),
            ]);
          // Once what was drawn is used up, its last goes on for ever.
          const claims = await claimsUntilTheEnd(job, (claim) => ways[Math.min(claim, ways.length) - 1]!);
          const settled = await world.count('effects', `operation_id = $1 and outcome <> 'absent'`, [job.operationId]);
          // Before any change, then at each place between two effects, then as many again for an undo that was begun.
          const bound =
            PREFLIGHT_INTERRUPTIONS_MAX + 1 + (STALLED_RESUMES_MAX + 1) * (settled + 1) + STALLED_RESUMES_MAX + 1;
          expect(claims).toBeLessThanOrEqual(bound);
          const { state, reason, attempt } = await world.operation(job.operationId);
          expect(attempt).toBe(claims);
          expect(state).toMatch(/^(succeeded|failed|blocked)$/);
          // What is not undone never ends half-done.
          if (state === 'failed') {
            const { identities } = await world.one('select identities from environments where id = $1', [
              job.environmentId,
            ]);
            if (kind === 'environment.create') expect(identities).toEqual({});
            expect(reason).not.toBeNull();
          }
          for (const name of readdirSync(homePaths(home).receipts)) {
            const { outcome } = await world.effect(name.replace('.json', ''));
            expect(outcome).toBe('unknown');
          }
        }),
        { numRuns: 25, examples: [[['unstarted']], [['applied', 'applied', 'unstarted']], [['lost']]] },
      );
    },
    120_000,
  );

  test('a create that dies before each effect: requeued three times, then failed with nothing made', async () => {
    const job = await world.queued();
    const claims = await claimsUntilTheEnd(job, () => 'unstarted');
    // The fourth interruption gives it up, and the claim after that ends it without an effect.
    expect(claims).toBe(PREFLIGHT_INTERRUPTIONS_MAX + 2);
    expect(await world.operation(job.operationId)).toMatchObject({
      state: 'failed',
      reason: { code: 'interrupted_before_change' },
    });
    expect(await world.count('effects', `operation_id = $1 and outcome <> 'absent'`, [job.operationId])).toBe(0);
  });

  test('a create that dies at its third effect again and again is undone; an undo that dies again and again blocks', async () => {
    const job = await world.queued();
    for (const how of ['applied', 'applied'] as const) expect(await interrupted(job, how)).toBe(true);
    const kindsSince = async (ordinal: number): Promise<readonly unknown[]> =>
      (
        await world.database.query<Row>(
          'select kind from effects where operation_id = $1 and ordinal > $2 order by ordinal',
          [job.operationId, ordinal],
        )
      ).map(({ kind }) => kind);
    for (let time = 0; time <= STALLED_RESUMES_MAX; time += 1) expect(await interrupted(job, 'unstarted')).toBe(true);
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'queued', abandon: { code: 'interrupted' } });
    expect(await kindsSince(2)).toEqual(Array.from({ length: STALLED_RESUMES_MAX + 1 }, () => 'interior'));
    const claims = await claimsUntilTheEnd(job, () => 'unstarted');
    expect(claims).toBe(STALLED_RESUMES_MAX + 1);
    expect(new Set(await kindsSince(3 + STALLED_RESUMES_MAX))).toEqual(new Set(['retire-database']));
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'blocked', reason: { code: 'interrupted' } });
    expect(await casesOf(job)).toHaveLength(1);
  });

  test('a delete that dies at the same effect again and again blocks: it is not undone', async () => {
    const job = await world.queued('environment.delete');
    await world.database.query('update environments set identities = $2 where id = $1', [
      job.environmentId,
      JSON.stringify({ ...FACTS['roles'], ...FACTS.database }),
    ]);
    expect(await interrupted(job, 'applied')).toBe(true);
    const claims = await claimsUntilTheEnd(job, () => 'lost');
    // What may be repeated is repeated within the same bound.
    expect(claims).toBe(STALLED_RESUMES_MAX + 1);
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'blocked', reason: { code: 'interrupted' } });
    expect(onDisk()).toEqual([]);
  });
});
