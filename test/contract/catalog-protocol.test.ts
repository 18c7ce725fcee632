/** Claim, record, settle, requeue, end: every conditional write of the protocol on a real catalog. */
import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Claim, ClaimAnswer } from '#catalog';
import {
  acceptPlace,
  blockOperation,
  claimJob,
  engineAge,
  failQueued,
  findEffect,
  finishOperation,
  hostAge,
  liveClaim,
  loadOperation,
  recordEffect,
  refusePlace,
  requeueOperation,
  settleEffect,
  settleUnstarted,
  tokensOfClaim,
  writeAudit,
} from '#catalog';
import { decideClaim } from '#protocol';
import { waitUntil } from '#testing';
import { CatalogWorld } from './catalog-world.ts';

let world: CatalogWorld;
beforeAll(async () => {
  world = await CatalogWorld.make();
});
afterAll(() => world.remove());
/** Each test begins with a host that nobody has claimed. */
beforeEach(async () => {
  await world.database.query('update claims set ended_at = now() where ended_at is null');
});

const claim = (jobId: string, claimId: string, hostId = world.hostId): Promise<ClaimAnswer> =>
  world.catalog.transaction((tx) => claimJob(tx, jobId, hostId, claimId));
const finish = (
  held: Claim,
  state: 'succeeded' | 'failed' | 'cancelled' = 'succeeded',
  reason?: { code: string; message: string },
): Promise<string> => world.catalog.transaction((tx) => finishOperation(tx, held, state, reason));
const block = (held: Claim, effectId?: string): Promise<string> =>
  world.catalog.transaction((tx) =>
    blockOperation(
      tx,
      held,
      { code: 'in_doubt', message: 'in doubt' },
      {
        kind: 'in_doubt',
        evidence: { why: 'test' },
        ...(effectId === undefined ? {} : { effectId }),
      },
    ),
  );
const claimNumber = async (): Promise<number> =>
  Number((await world.one('select claim_number from hosts where id = $1', [world.hostId]))['claim_number']);

describe('claims (invariant 2)', () => {
  test('of ten workers that claim one job at once exactly one gets it', async () => {
    const { jobId, operationId } = await world.queued();
    const before = await claimNumber();
    const answers = await Promise.all(Array.from({ length: 10 }, () => claim(jobId, randomUUID())));
    expect(answers.map(({ answer }) => answer).sort()).toEqual(['claimed', ...Array.from({ length: 9 }, () => 'none')]);
    expect(await world.count('claims', 'operation_id = $1', [operationId])).toBe(1);
    expect(await claimNumber()).toBe(before + 1);
    expect(await world.operation(operationId)).toMatchObject({ state: 'running', attempt: 1, stage: 'claimed' });
  });

  test('a claim that is repeated with its id, after a lost answer, is the same claim, and counts nothing again', async () => {
    const { jobId } = await world.queued();
    const claimId = randomUUID();
    const first = await claim(jobId, claimId);
    const before = await claimNumber();
    expect(await claim(jobId, claimId)).toEqual(first);
    expect(await Promise.all([claim(jobId, claimId), claim(jobId, claimId)])).toEqual([first, first]);
    expect(await claimNumber()).toBe(before);
  });

  test('a claim that has ended is not handed out again by repeating its id', async () => {
    const { jobId } = await world.queued();
    const claimId = randomUUID();
    await claim(jobId, claimId);
    const held = (await liveClaim(world.catalog, world.hostId))!;
    expect(held.claimId).toBe(claimId);
    await finish(held);
    expect(await claim(jobId, claimId)).toEqual({ answer: 'none' });
    expect(await liveClaim(world.catalog, world.hostId)).toBeUndefined();
  });

  test('a host has one live claim: a second job cannot be claimed beside it, and is left as it was', async () => {
    const [one, other] = [await world.queued(), await world.queued()];
    const held = await world.claimed(one);
    const before = await claimNumber();
    await expect(claim(other.jobId, randomUUID())).rejects.toMatchObject({
      code: '23505',
      constraint: 'claims_one_live',
    });
    expect(await world.operation(other.operationId)).toMatchObject({ state: 'queued', attempt: 0, claim_id: null });
    expect(await claimNumber()).toBe(before);
    await finish(held);
    expect((await world.claimed(other)).claimNumber).toBe(before + 1);
  });

  test('hosts do not get into each other’s way, and none gets another’s job', async () => {
    await world.addHost('other');
    const theirs = await world.queued('environment.create', { hostId: 'other' });
    await world.claimed(await world.queued());
    expect(await claim(theirs.jobId, randomUUID())).toEqual({ answer: 'none' });
    expect((await world.claimed(theirs, 'other')).claimNumber).toBe(1);
  });

  test('attempts and claim numbers only grow', async () => {
    const job = await world.queued();
    let before = await claimNumber();
    for (const attempt of [1, 2, 3]) {
      const held = await world.claimed(job);
      expect([held.attempt, held.claimNumber]).toEqual([attempt, before + 1]);
      before = held.claimNumber;
      await world.catalog.transaction((tx) => requeueOperation(tx, held, 'none', 0));
    }
  });

  test.each(['running', 'blocked', 'succeeded', 'failed', 'cancelled'])(
    'a job whose operation is %s is not claimed',
    async (state) => {
      const { jobId, operationId } = await world.queued();
      await world.database.query('update operations set state = $2 where id = $1', [operationId, state]);
      expect(await claim(jobId, randomUUID())).toEqual({ answer: 'none' });
      expect(await claim(randomUUID(), randomUUID())).toEqual({ answer: 'none' });
    },
  );

  test.each(['running', 'blocked'])('a delete waits for a create that is %s, and says for what', async (state) => {
    const create = await world.queued();
    const remove = await world.queued('environment.delete', { environmentId: create.environmentId });
    await world.database.query('update operations set state = $2 where id = $1', [create.operationId, state]);
    expect(await claim(remove.jobId, randomUUID())).toEqual({
      answer: 'waiting',
      for: `operation ${create.operationId} (environment.create) is ${state}`,
    });
    await world.database.query(`update operations set state = 'cancelled' where id = $1`, [create.operationId]);
    expect((await claim(remove.jobId, randomUUID())).answer).toBe('claimed');
  });

  test('a job whose requester has lost his key is not claimed, and ends as failed', async () => {
    const { jobId, operationId, environmentId } = await world.queued();
    await world.database.query('update api_keys set revoked_at = now() where id = $1', [world.keyId]);
    try {
      expect(await claim(jobId, randomUUID())).toMatchObject({ answer: 'revoked', operationId });
    } finally {
      await world.database.query('update api_keys set revoked_at = null where id = $1', [world.keyId]);
    }
    const reason = { code: 'forbidden', message: 'the key was revoked' };
    for (let round = 0; round < 2; round += 1)
      await world.catalog.transaction((tx) => failQueued(tx, operationId, reason));
    expect(await world.operation(operationId)).toMatchObject({ state: 'failed', reason });
    expect(await world.one('select state from environments where id = $1', [environmentId])).toEqual({
      state: 'failed',
    });
    expect(await world.count('audit', `subject = $1 and action = 'operation.failed'`, [operationId])).toBe(1);
  });
});

describe('recording an effect', () => {
  const record = (effect: Parameters<typeof recordEffect>[1]): Promise<string> =>
    world.catalog.transaction((tx) => recordEffect(tx, effect));

  test('is done once, under its claim, and answers a repetition as such', async () => {
    const held = await world.claimed(await world.queued());
    const effect = world.toRecord(held);
    expect([await record(effect), await record(effect)]).toEqual(['updated', 'already']);
    expect(await world.effect(effect.effectId)).toMatchObject({
      ordinal: 1,
      outcome: 'pending',
      token: effect.token,
      settled_at: null,
    });
    expect(await world.operation(held.operationId)).toMatchObject({ stage: 'roles' });
    const next = world.toRecord(held, 'database');
    expect(await record(next)).toBe('updated');
    expect(await world.effect(next.effectId)).toMatchObject({ ordinal: 2 });
    expect(await record(effect)).toBe('already');
    expect(await tokensOfClaim(world.catalog, held.claimId)).toHaveLength(2);
  });

  test('under a claim that has ended, that is another’s, or whose operation no longer runs is a conflict, and records nothing', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    const stranger = world.toRecord({ ...held, claimId: randomUUID() });
    expect(await record(stranger)).toBe('conflict');
    await world.catalog.transaction((tx) => requeueOperation(tx, held, 'none', 0));
    expect(await record(world.toRecord(held))).toBe('conflict');
    const successor = await world.claimed(job);
    // The claim before it has lost its job for good.
    expect(await record(world.toRecord(held))).toBe('conflict');
    await block(successor);
    expect(await record(world.toRecord(successor))).toBe('conflict');
    expect(await world.count('effects', 'operation_id = $1', [job.operationId])).toBe(0);
    expect(
      await world.count('tokens t join effects e on e.id = t.effect_id', 'e.operation_id = $1', [job.operationId]),
    ).toBe(0);
  });
});

describe('settling an effect', () => {
  const settle = (settlement: Parameters<typeof settleEffect>[1]): Promise<string> =>
    world.catalog.transaction((tx) => settleEffect(tx, settlement));

  test('writes outcome, facts and identities together, once; a repetition changes nothing', async () => {
    const { environmentId, ...job } = await world.queued();
    const held = await world.claimed(job);
    const effect = await world.recorded(held);
    const settlement = world.settlementOf(effect, {
      facts: { databaseOid: 5 },
      identities: { databaseOid: 5 },
      subject: { type: 'environment', id: environmentId },
    });
    expect(await settle(settlement)).toBe('updated');
    expect(await settle({ ...settlement, outcome: 'refused', facts: {}, identities: {} })).toBe('already');
    expect(await world.effect(effect.effectId)).toMatchObject({
      outcome: 'applied',
      facts: { databaseOid: 5 },
      reason: null,
    });
    expect((await world.effect(effect.effectId))['token_settled_at']).not.toBeNull();
    expect(await world.one('select identities from environments where id = $1', [environmentId])).toEqual({
      identities: { databaseOid: 5 },
    });
    expect(await findEffect(world.catalog, effect.effectId)).toMatchObject({ outcome: 'applied', token: effect.token });
  });

  test('of two that settle the same effect differently, one is in force', async () => {
    const held = await world.claimed(await world.queued());
    const effect = await world.recorded(held);
    const answers = await Promise.all(
      (['applied', 'refused'] as const).map((outcome) => settle(world.settlementOf(effect, { outcome }))),
    );
    expect([...answers].sort()).toEqual(['already', 'updated']);
    const expected = answers[0] === 'updated' ? 'applied' : 'refused';
    expect(await world.effect(effect.effectId)).toMatchObject({ outcome: expected });
  });

  test('under another token, another claim or a claim that has ended is a conflict, and nothing is written', async () => {
    const { environmentId, ...job } = await world.queued();
    const held = await world.claimed(job);
    const effect = await world.recorded(held);
    const subject = { type: 'environment' as const, id: environmentId };
    const wrong = { identities: { databaseOid: 9 }, subject };
    expect(await settle(world.settlementOf(effect, { ...wrong, token: randomUUID() }))).toBe('conflict');
    expect(await settle(world.settlementOf(effect, { ...wrong, claimId: randomUUID() }))).toBe('conflict');
    expect(await settle(world.settlementOf(effect, { ...wrong, effectId: randomUUID() }))).toBe('conflict');
    await world.catalog.transaction((tx) => requeueOperation(tx, held, 'none', 0));
    expect(await settle(world.settlementOf(effect, wrong))).toBe('conflict');
    // Neither can the successor settle what was recorded under the claim before.
    const successor = await world.claimed(job);
    expect(await settle(world.settlementOf(effect, { ...wrong, claimId: successor.claimId }))).toBe('conflict');
    expect(await world.effect(effect.effectId)).toMatchObject({ outcome: 'pending', settled_at: null });
    expect(await world.one('select identities from environments where id = $1', [environmentId])).toEqual({
      identities: {},
    });
  });

  test.each(['record', 'settle'] as const)(
    'a %s that meets the end of its claim half-way waits for it, and is a conflict then: it does not go by what it saw before',
    async (write) => {
      const job = await world.queued();
      const held = await world.claimed(job);
      const effect = await world.recorded(held);
      const next = world.toRecord(held, 'database');
      let late: Promise<string> | undefined;
      await world.catalog.transaction(async (tx) => {
        await requeueOperation(tx, held, 'none', 0);
        late = world.catalog.transaction((other) =>
          write === 'record' ? recordEffect(other, next) : settleEffect(other, world.settlementOf(effect)),
        );
        await waitUntil('the late write waits', async () => {
          const waiting = `datname = current_database() and wait_event_type = 'Lock' and application_name = 'test'`;
          return (await world.count('pg_stat_activity', waiting)) === 1;
        });
      });
      expect(await late).toBe('conflict');
      expect(await world.count('effects', 'operation_id = $1', [job.operationId])).toBe(1);
      expect(await world.effect(effect.effectId)).toMatchObject({ outcome: 'pending' });
    },
  );

  test('an applied undo takes the applied effects of its kinds with it; a refused one, or one of another operation, does not', async () => {
    const other = await world.claimed(await world.queued());
    const elsewhere = await world.recorded(other);
    await settle(world.settlementOf(elsewhere));
    await finish(other);

    const held = await world.claimed(await world.queued());
    const [roles, rules, refused] = [
      await world.recorded(held, 'roles'),
      await world.recorded(held, 'rules'),
      await world.recorded(held, 'roles'),
    ];
    for (const effect of [roles, rules]) await settle(world.settlementOf(effect));
    await settle(world.settlementOf(refused, { outcome: 'refused' }));
    const outcomes = async (): Promise<unknown[]> =>
      Promise.all(
        [roles, rules, refused, elsewhere].map(async ({ effectId }) => (await world.effect(effectId))['outcome']),
      );

    const failed = await world.recorded(held, 'drop-roles');
    await settle(world.settlementOf(failed, { outcome: 'refused', undoes: ['roles', 'rules'] }));
    expect(await outcomes()).toEqual(['applied', 'applied', 'refused', 'applied']);
    const undo = await world.recorded(held, 'drop-roles');
    await settle(world.settlementOf(undo, { undoes: ['roles', 'rules'] }));
    expect(await outcomes()).toEqual(['undone', 'undone', 'refused', 'applied']);
  });

  test('what was recorded and never started is settled as absent, and nothing else is', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    const [done, open] = [await world.recorded(held), await world.recorded(held, 'database')];
    await settle(world.settlementOf(done));
    const unstarted = (): Promise<number> => world.catalog.transaction((tx) => settleUnstarted(tx, held.claimId));
    expect([await unstarted(), await unstarted()]).toEqual([1, 0]);
    expect(await world.effect(done.effectId)).toMatchObject({ outcome: 'applied' });
    expect(await world.effect(open.effectId)).toMatchObject({ outcome: 'absent' });
    expect((await tokensOfClaim(world.catalog, held.claimId)).filter((token) => !token.settled)).toEqual([]);
  });

  test('the situation that the plan reads is what was settled, in the order in which it was recorded', async () => {
    const { environmentId, ...job } = await world.queued();
    const held = await world.claimed(job);
    const subject = { type: 'environment' as const, id: environmentId };
    const roleOids = { owner: 1, door: 2, migrate: 3, app: 4, readonly: 5 };
    await settle(
      world.settlementOf(await world.recorded(held, 'roles'), {
        facts: { roleOids },
        identities: { roleOids },
        subject,
      }),
    );
    const reason = { code: 'because', message: 'because' };
    await settle(
      world.settlementOf(await world.recorded(held, 'database'), {
        outcome: 'refused',
        reason,
        identities: { roleOids },
        subject,
      }),
    );
    const { situation } = await loadOperation(world.catalog, held.operationId);
    expect(situation).toMatchObject({
      subject: { type: 'environment', id: environmentId, identities: { roleOids } },
      effects: [
        { kind: 'roles', outcome: 'applied', facts: { roleOids } },
        { kind: 'database', outcome: 'refused', facts: {}, reason },
      ],
      cancelRequested: false,
      superseded: false,
    });
    expect(situation.abandon).toBeUndefined();
  });
});

describe('giving a claim back', () => {
  const requeue = (
    held: Claim,
    count: 'preflight' | 'resume' | 'none',
    settled = 0,
    abandon?: { code: string; message: string },
  ): Promise<void> => world.catalog.transaction((tx) => requeueOperation(tx, held, count, settled, abandon));

  test('queues the operation again, with one new message, and is harmless when repeated', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    for (let round = 0; round < 2; round += 1) await requeue(held, 'preflight');
    expect(await world.operation(job.operationId)).toMatchObject({
      state: 'queued',
      claim_id: null,
      preflight_interruptions: 1,
      stalled_resumes: 0,
    });
    const messages = await world.database.query<{ message: object; routing_key: string }>(
      `select message, routing_key from outbox where message ->> 'jobId' = $1`,
      [job.jobId],
    );
    expect(messages).toEqual([
      { message: { version: 1, jobId: job.jobId }, routing_key: `surefoot.jobs.${world.hostId}` },
    ]);
    expect(await world.one('select end_reason from claims where id = $1', [held.claimId])).toEqual({
      end_reason: 'interrupted',
    });
  });

  test('by a claim that is no longer the operation’s takes nothing from its successor', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    await requeue(held, 'none');
    const successor = await world.claimed(job);
    await requeue(held, 'preflight');
    expect(await world.operation(job.operationId)).toMatchObject({
      state: 'running',
      claim_id: successor.claimId,
      preflight_interruptions: 0,
    });
    expect((await liveClaim(world.catalog, world.hostId))?.claimId).toBe(successor.claimId);
  });

  test('is bounded over restarts: three preflight interruptions, then the operation is given up (invariant 8)', async () => {
    const job = await world.queued();
    const decisions: string[] = [];
    // Each round is a restart: nothing is kept but what the catalog says.
    for (let round = 0; round < 9 && decisions.at(-1) !== 'abandon'; round += 1) {
      const held = await world.claimed(job);
      const { operation, effects } = await loadOperation(world.catalog, job.operationId);
      const decision = decideClaim({
        unsettledTokens: 0,
        settledEffects: effects.length,
        progress: false,
        preflightInterruptions: operation.preflight_interruptions,
        stalledResumes: operation.stalled_resumes,
        abandoned: operation.abandon !== null,
        cleanStop: false,
        onInterrupted: 'undo',
      });
      decisions.push(decision.do);
      if (decision.do === 'requeue') await requeue(held, 'preflight');
      if (decision.do === 'abandon') await requeue(held, 'none', 0, decision.reason);
    }
    expect(decisions).toEqual(['requeue', 'requeue', 'requeue', 'abandon']);
    expect((await loadOperation(world.catalog, job.operationId)).situation.abandon?.code).toBe(
      'interrupted_before_change',
    );
    // And stays given up, whatever comes later.
    await requeue(await world.claimed(job), 'none');
    expect((await loadOperation(world.catalog, job.operationId)).situation.abandon?.code).toBe(
      'interrupted_before_change',
    );
  });

  test('after settled effects is bounded by how often there was no progress; progress begins the count anew; a clean stop is free', async () => {
    const job = await world.queued();
    const stalled: unknown[] = [];
    for (const [count, settled] of [
      ['resume', 2],
      ['resume', 2],
      ['none', 2],
      ['resume', 2],
      ['resume', 3],
      ['resume', 3],
    ] as const) {
      await requeue(await world.claimed(job), count, settled);
      stalled.push((await world.operation(job.operationId))['stalled_resumes']);
    }
    expect(stalled).toEqual([0, 1, 1, 2, 0, 1]);
    expect(await world.operation(job.operationId)).toMatchObject({ preflight_interruptions: 0, effects_at_resume: 3 });
  });
});

describe('ends (invariant 12)', () => {
  test.each([
    ['succeeded', 'ready'],
    ['failed', 'failed'],
    ['cancelled', 'deleted'],
  ] as const)(
    'a create that has %s ends once, leaves its environment %s, and writes one line of audit',
    async (state, environment) => {
      const { environmentId, ...job } = await world.queued();
      const held = await world.claimed(job);
      const reason = state === 'succeeded' ? undefined : { code: 'because', message: 'because' };
      expect([await finish(held, state, reason), await finish(held, 'failed'), await finish(held, state)]).toEqual([
        'updated',
        'already',
        'already',
      ]);
      expect(await world.operation(job.operationId)).toMatchObject({ state, stage: state, reason: reason ?? null });
      const row = await world.one(
        'select state, last_observed_at is not null as observed from environments where id = $1',
        [environmentId],
      );
      expect(row).toEqual({ state: environment, observed: state === 'succeeded' });
      expect(await world.count('audit', `subject = $1`, [job.operationId])).toBe(1);
      // What is gone needs no secret.
      const secrets = await world.count(
        'logins',
        'environment_id = $1 and password_sealed is not null and verifier_sealed is not null',
        [environmentId],
      );
      expect(secrets).toBe(state === 'succeeded' ? 3 : 0);
    },
  );

  test('of a worker that finishes and a recovery that blocks, one has the last word', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    const answers = await Promise.all([finish(held), block(held), finish(held), block(held)]);
    expect(answers.filter((answer) => answer === 'updated')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'already')).toHaveLength(3);
    const { state } = (await world.operation(job.operationId)) as { state: string };
    expect(state).toBe(answers.indexOf('updated') % 2 === 0 ? 'succeeded' : 'blocked');
    expect(await world.count('audit', 'subject = $1', [job.operationId])).toBe(1);
    expect(await world.count('cases', 'operation_id = $1', [job.operationId])).toBe(state === 'blocked' ? 1 : 0);
  });

  test('a worker whose claim was given back cannot end what its successor runs', async () => {
    const job = await world.queued();
    const held = await world.claimed(job);
    await world.catalog.transaction((tx) => requeueOperation(tx, held, 'none', 0));
    const successor = await world.claimed(job);
    expect([await finish(held), await block(held)]).toEqual(['already', 'already']);
    expect(await finish({ ...held, claimId: randomUUID() })).toBe('conflict');
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'running', claim_id: successor.claimId });
    expect(await finish(successor)).toBe('updated');
  });

  test('a block opens one case with its evidence, keeps the effect in doubt, and ends the claim but not the operation', async () => {
    const { environmentId, ...job } = await world.queued();
    const held = await world.claimed(job);
    const effect = await world.recorded(held);
    expect([await block(held, effect.effectId), await block(held, effect.effectId)]).toEqual(['updated', 'already']);
    expect(await world.effect(effect.effectId)).toMatchObject({
      outcome: 'unknown',
      settled_at: null,
      token_settled_at: null,
    });
    expect(await world.operation(job.operationId)).toMatchObject({ state: 'blocked', finished_at: null });
    expect(await world.one('select state from environments where id = $1', [environmentId])).toEqual({
      state: 'blocked',
    });
    const cases = await world.database.query(
      'select kind, effect_id, environment_id, evidence, closed_at from cases where operation_id = $1',
      [job.operationId],
    );
    expect(cases).toEqual([
      {
        kind: 'in_doubt',
        effect_id: effect.effectId,
        environment_id: environmentId,
        evidence: { why: 'test' },
        closed_at: null,
      },
    ]);
    expect(await liveClaim(world.catalog, world.hostId)).toBeUndefined();
    // What is blocked keeps its secrets: it is not gone.
    expect(await world.count('logins', 'environment_id = $1 and password_sealed is not null', [environmentId])).toBe(3);
  });

  test('an engine that was made gets a generation with its pin, and its rules', async () => {
    const held = await world.claimed(await world.queued('engine.create'));
    const pin = {
      containerId: 'c',
      imageDigest: 'sha256:1',
      volumeName: 'v',
      volumeMark: 'm',
      systemIdentifier: '7512345678901234567',
      timeline: 1,
      configurationDigest: 'd',
    };
    const finding = {
      pinned: { pin, extensions: ['pgcrypto'] },
      ruleGeneration: { generation: 1, digest: 'e', profiles: ['local', 'private'] },
    };
    const ends = await Promise.all(
      [1, 2].map(() => world.catalog.transaction((tx) => finishOperation(tx, held, 'succeeded', undefined, finding))),
    );
    expect([...ends].sort()).toEqual(['already', 'updated']);
    const { engine } = await loadOperation(world.catalog, held.operationId);
    expect(engine).toMatchObject({ state: 'ready', generation: 1, rule_generation: 1, pin, extensions: ['pgcrypto'] });
    expect(await world.count('engine_generations')).toBe(1);
  });
});

describe('age', () => {
  test('a place has settled what left a trace there: absences, and effects that never reach an engine, are none', async () => {
    const settle = (settlement: Parameters<typeof settleEffect>[1]): Promise<string> =>
      world.catalog.transaction((tx) => settleEffect(tx, settlement));
    const ages = async (): Promise<readonly number[]> => [
      (await hostAge(world.catalog, world.hostId)).settledClaim,
      (await engineAge(world.catalog, world.engineId, ['roles'])).settledClaim,
    ];
    await world.database.query('delete from cases');
    const before = await ages();
    const absent = await world.claimed(await world.queued());
    await settle(world.settlementOf(await world.recorded(absent), { outcome: 'absent' }));
    await finish(absent, 'failed');
    expect(await ages()).toEqual(before);
    const probed = await world.claimed(await world.queued());
    await settle(world.settlementOf(await world.recorded(probed, 'probe')));
    await finish(probed);
    expect(await ages()).toEqual([probed.claimNumber, before[1]]);
    const applied = await world.claimed(await world.queued());
    await settle(world.settlementOf(await world.recorded(applied, 'roles')));
    await finish(applied);
    expect(await ages()).toEqual([applied.claimNumber, applied.claimNumber]);
    expect((await hostAge(world.catalog, world.hostId)).record.claimNumber).toBe(applied.claimNumber);
    await expect(hostAge(world.catalog, 'nowhere')).rejects.toThrow(TypeError);
  });

  test('a place that is refused has one open case however often it is met, and none once it is accepted', async () => {
    const reason = { code: 'age', message: 'went back' };
    const places = [{ hostId: world.hostId }, { hostId: world.hostId, engineId: world.engineId }];
    for (const place of [...places, ...places]) await refusePlace(world.catalog, place, reason);
    const open = (): Promise<number> => world.count('cases', `kind = 'age' and closed_at is null`);
    expect(await open()).toBe(2);
    expect(await world.one('select refusal from hosts where id = $1', [world.hostId])).toEqual({ refusal: reason });
    await acceptPlace(world.catalog, places[1]!);
    expect(await open()).toBe(1);
    await acceptPlace(world.catalog, places[0]!);
    expect(await open()).toBe(0);
    expect(await world.one('select refusal from hosts where id = $1', [world.hostId])).toEqual({ refusal: null });
    await refusePlace(world.catalog, places[1]!, reason);
    expect(await open()).toBe(1);
    await acceptPlace(world.catalog, places[1]!);
  });
});

describe('the audit', () => {
  interface Line {
    readonly id: string;
    readonly at: string;
    readonly actor: string;
    readonly action: string;
    readonly subject: string;
    readonly detail: string;
    readonly previous_hash: Buffer;
    readonly hash: Buffer;
  }

  /** The chain, computed here once more. @returns ids of lines that are not what they were */
  async function broken(): Promise<readonly string[]> {
    const client = new pg.Client({ connectionString: world.database.url });
    await client.connect();
    const { rows } = await client.query<Line>(
      `select id, (at at time zone 'utc')::text as at, actor, action, subject, detail::text, previous_hash, hash from audit order by audit.id`,
    );
    await client.end();
    let previous: Buffer = createHash('sha256').update('').digest();
    return rows.flatMap((line) => {
      const text = [line.id, line.at, line.actor, line.action, line.subject, line.detail].join('|');
      const hash = createHash('sha256').update(previous).update(text, 'utf8').digest();
      const right = line.previous_hash.equals(previous) && line.hash.equals(hash);
      previous = line.hash;
      return right ? [] : [line.id];
    });
  }

  test('is one unbroken chain, also of transactions that wrote at the same time and of some that came to nothing', async () => {
    const write = (subject: string, fails: boolean): Promise<unknown> =>
      world.catalog
        .transaction(async (tx) => {
          for (const action of ['one', 'two'])
            await writeAudit(tx, 'key ümläut', action, subject, { quoted: `a"b|c'd`, n: [1, null] });
          if (fails) throw new Error('not this one');
        })
        .catch((error: unknown) => error);
    await Promise.all(Array.from({ length: 24 }, (_, index) => write(randomUUID(), index % 4 === 3)));
    expect(await world.count('audit', `actor = 'key ümläut'`)).toBe(36);
    expect(await broken()).toEqual([]);
  });

  test('is the same chain whatever a session says about dates and time zones', async () => {
    const client = new pg.Client({
      connectionString: world.database.url,
      options: '-c datestyle=sql,dmy -c timezone=Asia/Tokyo',
    });
    await client.connect();
    await client.query(
      `insert into audit (actor, action, subject, detail, previous_hash, hash) values ('far away', 'x', 'y', '{}', 'forged', 'forged')`,
    );
    await client.end();
    expect(await broken()).toEqual([]);
  });

  test.each([
    ['changed', `update audit set actor = 'somebody else'`],
    ['removed', 'delete from audit'],
    ['emptied', 'truncate audit'],
  ])('cannot be %s', async (_what, statement) => {
    const before = await world.count('audit');
    await expect(world.database.query(statement)).rejects.toThrow('append-only');
    expect(await world.count('audit')).toBe(before);
  });

  test('shows where somebody went around that: a changed line and a removed one break the chain', async () => {
    const [first, second] = await world.database.query<{ id: string }>('select id from audit order by id limit 2');
    const around = async (statement: string, values: readonly unknown[]): Promise<void> => {
      await world.database.query('alter table audit disable trigger user');
      await world.database.query(statement, values);
      await world.database.query('alter table audit enable trigger user');
    };
    await around(`update audit set detail = '{"forged": true}' where id = $1`, [first!.id]);
    expect(await broken()).toEqual([first!.id]);
    await around('delete from audit where id = $1', [first!.id]);
    expect(await broken()).toEqual([second!.id]);
  });
});
