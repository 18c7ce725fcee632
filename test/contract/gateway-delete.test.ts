/** One unfinished operation per environment, and a delete beside it (DESIGN §3). The worker's part is played by its statements. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { blockOperation, Catalog, type Claim, claimJob, finishOperation, requeueOperation } from '#catalog';
import type { OwnDatabase } from './catalog-server.ts';
import { type Answer, GatewayUnderTest, HOST, seededDatabase } from './gateway-world.ts';

let database: OwnDatabase;
let catalog: Catalog;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  database = await seededDatabase();
  catalog = Catalog.open({ url: database.url, applicationName: 'surefoot test', maxConnections: 4 });
  gateway = await (await GatewayUnderTest.start(database.url)).ready();
});
afterAll(async () => {
  await gateway.stop();
  await catalog.close();
  await database.drop();
});

let made = 0;
async function created(): Promise<{ id: string; create: string; name: string }> {
  const name = `e${++made}`;
  const { body } = await gateway.create(name);
  return { id: body.environmentId, create: body.id, name };
}

const remove = (id: string, headers: Record<string, string> = {}): Promise<Answer> =>
  gateway.request('DELETE', `/v1/environments/${id}`, { headers });
const cancel = (id: string): Promise<Answer> => gateway.request('POST', `/v1/operations/${id}/cancel`);
const operation = async (id: string) => (await gateway.get(`/v1/operations/${id}`)).body;
const state = async (id: string): Promise<string> => (await gateway.get(`/v1/environments/${id}`)).body.state;

async function flags(operationId: string) {
  const [row] = await database.query<{ cancel_requested: boolean; superseded: boolean }>(
    'select cancel_requested, superseded from operations where id = $1',
    [operationId],
  );
  return { cancelRequested: row!.cancel_requested, superseded: row!.superseded };
}

async function claimAnswer(operationId: string) {
  const [job] = await database.query<{ id: string }>('select id from jobs where operation_id = $1', [operationId]);
  return catalog.transaction((tx) => claimJob(tx, job!.id, HOST, randomUUID()));
}

async function claimed(operationId: string): Promise<Claim> {
  const answer = await claimAnswer(operationId);
  if (answer.answer !== 'claimed') throw new Error(`not claimed: ${JSON.stringify(answer)}`);
  return answer.claim;
}

const finish = (claim: Claim, end: 'succeeded' | 'failed' | 'cancelled') =>
  catalog.transaction((tx) => finishOperation(tx, claim, end, undefined));

async function effect(claim: Claim, outcome: string): Promise<void> {
  await database.query(
    `insert into effects (id, operation_id, claim_id, ordinal, kind, spec, outcome, settled_at)
     select $1, $2, $3, 1 + count(*), 'roles', '{}', $4, now() from effects where operation_id = $2`,
    [randomUUID(), claim.operationId, claim.claimId, outcome],
  );
}

async function ready(): Promise<{ id: string; name: string }> {
  const environment = await created();
  await finish(await claimed(environment.create), 'succeeded');
  return environment;
}

test('a ready environment is deleting from the moment its delete is accepted, and deleted at its end', async () => {
  const { id, name } = await ready();
  const accepted = await remove(id);
  expect(accepted).toMatchObject({
    status: 202,
    body: { kind: 'environment.delete', environmentId: id, state: 'queued' },
  });
  expect(accepted.headers.get('location')).toBe(`/v1/operations/${accepted.body.id}`);
  expect(await state(id)).toBe('deleting');
  expect((await gateway.create(name)).body.code).toBe('environment_exists');
  await finish(await claimed(accepted.body.id), 'succeeded');
  expect(await state(id)).toBe('deleted');
  const left = await database.query(
    'select 1 from logins where environment_id = $1 and num_nonnulls(password_sealed, verifier_sealed) > 0',
    [id],
  );
  expect(left).toEqual([]);
});

test('B127: after a delete the same name works at once, in no list is the old one, and it still answers', async () => {
  const { id, name } = await ready();
  await finish(await claimed((await remove(id)).body.id), 'succeeded');
  const again = await gateway.create(name);
  expect(again.status).toBe(202);
  const listed = await gateway.get(`/v1/projects/default/environments?name=${name}`);
  expect(listed.body.items.map((item) => item.id)).toEqual([again.body.environmentId]);
  expect(await gateway.get(`/v1/environments/${id}`)).toMatchObject({ status: 200, body: { state: 'deleted' } });
});

test('a second delete is busy with the id of the first, also when both come at once', async () => {
  const { id } = await ready();
  const answers = await Promise.all(Array.from({ length: 6 }, () => remove(id)));
  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  for (const { body } of answers.filter(({ status }) => status !== 202))
    expect(body).toMatchObject({ status: 409, code: 'environment_busy', operationId: accepted[0]!.body.id });
});

test('a deleted environment is not deleted again, and one that never was is not found', async () => {
  const { id } = await ready();
  await finish(await claimed((await remove(id)).body.id), 'succeeded');
  expect((await remove(id)).body).toMatchObject({ status: 409, code: 'environment_deleted' });
  expect((await remove(randomUUID())).body).toMatchObject({ status: 404, code: 'not_found' });
  expect((await remove('no-id')).body).toMatchObject({ status: 404, code: 'not_found' });
});

test('a queued create is cancelled on the spot, its job does nothing, and the delete has the environment', async () => {
  const { id, create, name } = await created();
  const { body } = await remove(id);
  expect(await operation(create)).toMatchObject({
    state: 'cancelled',
    reason: { code: 'superseded' },
    finishedAt: expect.any(String),
  });
  expect(await state(id)).toBe('deleting');
  expect(await claimAnswer(create)).toEqual({ answer: 'none' });
  expect((await gateway.create(name)).body.code).toBe('environment_exists');
  await finish(await claimed(body.id), 'succeeded');
  expect(await state(id)).toBe('deleted');
});

test.each(['cancelled', 'succeeded', 'failed'] as const)(
  'B019: a delete waits for a running create, and runs once that has %s; the name is held all the while',
  async (end) => {
    const { id, create, name } = await created();
    const claim = await claimed(create);
    const { body } = await remove(id);
    expect(body.waitingFor).toContain(create);
    expect(await state(id)).toBe('provisioning');
    expect(await flags(create)).toEqual({
      cancelRequested: true,
      superseded: true,
    });
    expect(await claimAnswer(body.id)).toMatchObject({ answer: 'waiting', for: expect.stringContaining(create) });
    await finish(claim, end);
    expect(await state(id)).toBe('deleting');
    expect((await gateway.create(name)).body.code).toBe('environment_exists');
    const kept = await database.query(
      'select 1 from logins where environment_id = $1 and verifier_sealed is not null',
      [id],
    );
    expect(kept).toHaveLength(3);
    await finish(await claimed(body.id), 'succeeded');
    expect(await state(id)).toBe('deleted');
    expect((await gateway.create(name)).status).toBe(202);
  },
);

test('a create that is interrupted while a delete waits is claimed again first', async () => {
  const { id, create } = await created();
  const claim = await claimed(create);
  const { body } = await remove(id);
  await catalog.transaction((tx) => requeueOperation(tx, claim, 'none', 0));
  expect(await claimAnswer(body.id)).toMatchObject({ answer: 'waiting' });
  await finish(await claimed(create), 'cancelled');
  await finish(await claimed(body.id), 'succeeded');
  expect(await state(id)).toBe('deleted');
});

test('behind a block a delete waits, and both it and the refusal to cancel name the case', async () => {
  const { id, create } = await created();
  const claim = await claimed(create);
  await catalog.transaction((tx) =>
    blockOperation(
      tx,
      claim,
      { code: 'outcome_unknown', message: 'who knows' },
      { kind: 'outcome_unknown', evidence: { seen: 1 } },
    ),
  );
  const blocked = await operation(create);
  expect(blocked).toMatchObject({ state: 'blocked', reason: { code: 'outcome_unknown' }, caseId: expect.any(String) });
  const { body } = await remove(id);
  expect(body.waitingFor).toContain(blocked.caseId);
  expect(await claimAnswer(body.id)).toMatchObject({ answer: 'waiting', for: expect.stringContaining(blocked.caseId) });
  expect(await state(id)).toBe('blocked');
  expect((await cancel(create)).body).toMatchObject({ status: 409, code: 'operation_blocked', caseId: blocked.caseId });
  const shown = await gateway.get(`/v1/admin/cases/${blocked.caseId}`);
  expect(shown.body).toMatchObject({ state: 'open', operationId: create, environmentId: id, evidence: { seen: 1 } });
  const { body: open } = await gateway.get('/v1/admin/cases');
  expect(open.items.map((item) => item.id)).toContain(blocked.caseId);
  expect((await gateway.get('/v1/admin/cases?state=closed')).body.items).toEqual([]);
});

test('a create that is cancelled in the queue leaves nothing behind, and its name is free', async () => {
  const { id, create, name } = await created();
  expect(await cancel(create)).toMatchObject({ status: 202, body: { state: 'cancelled' } });
  expect(await state(id)).toBe('deleted');
  expect((await gateway.create(name)).status).toBe(202);
  expect((await cancel(create)).body).toMatchObject({ status: 409, code: 'operation_finished' });
});

test('a running create is asked to stop; it is cancelled when the worker says so', async () => {
  const { id, create } = await created();
  const claim = await claimed(create);
  expect(await cancel(create)).toMatchObject({ status: 202, body: { state: 'running' } });
  expect(await flags(create)).toEqual({
    cancelRequested: true,
    superseded: false,
  });
  await finish(claim, 'cancelled');
  expect(await state(id)).toBe('deleted');
});

test('a queued create that has made something already is asked to stop, so that it is undone', async () => {
  const { create } = await created();
  const claim = await claimed(create);
  await effect(claim, 'applied');
  await catalog.transaction((tx) => requeueOperation(tx, claim, 'resume', 1));
  expect(await cancel(create)).toMatchObject({ status: 202, body: { state: 'queued' } });
  expect(await flags(create)).toMatchObject({ cancelRequested: true });
  await finish(await claimed(create), 'cancelled');
});

test('a delete that is cancelled in the queue gives the environment back as it was', async () => {
  const { id } = await ready();
  const { body } = await remove(id);
  expect(await cancel(body.id)).toMatchObject({ status: 202, body: { state: 'cancelled' } });
  expect(await state(id)).toBe('ready');
  expect((await remove(id)).status).toBe(202);
});

test('a delete that is cancelled after it cancelled a queued create leaves nothing, since nothing was made', async () => {
  const { id } = await created();
  const { body } = await remove(id);
  await cancel(body.id);
  expect(await state(id)).toBe('deleted');
});

test('a delete that is cancelled while it waits for a running create lets that create clear up after itself', async () => {
  const { id, create } = await created();
  const claim = await claimed(create);
  const { body } = await remove(id);
  await cancel(body.id);
  expect(await state(id)).toBe('provisioning');
  expect(await flags(create)).toEqual({
    cancelRequested: true,
    superseded: false,
  });
  await finish(claim, 'cancelled');
  expect(await state(id)).toBe('deleted');
});

test('a delete that is cancelled after a superseded create left something shows that it is degraded', async () => {
  const { id, create } = await created();
  const claim = await claimed(create);
  const { body } = await remove(id);
  await database.query(`update environments set identities = '{"databaseOid": 5}' where id = $1`, [id]);
  await finish(claim, 'cancelled');
  await cancel(body.id);
  expect(await state(id)).toBe('degraded');
});

test('a failed environment can be deleted, so that it leaves the list', async () => {
  const { id, create } = await created();
  await finish(await claimed(create), 'failed');
  expect(await state(id)).toBe('failed');
  await finish(await claimed((await remove(id)).body.id), 'succeeded');
  expect(await state(id)).toBe('deleted');
});

test('a failed environment whose name is in use again can be deleted, and takes the name from nobody', async () => {
  const failed: string[] = [];
  const name = `e${++made}`;
  for (let round = 0; round < 2; round += 1) {
    const { body } = await gateway.create(name);
    await finish(await claimed(body.id), 'failed');
    failed.push(body.environmentId);
  }
  // Nobody has the name yet: it stays free while the delete of the one that failed is open.
  const first = await remove(failed[0]!);
  expect(first.status).toBe(202);
  expect(await state(failed[0]!)).toBe('failed');
  const again = await gateway.create(name);
  expect(again.status).toBe(202);
  const second = await remove(failed[1]!);
  expect(second.status).toBe(202);
  expect((await remove(failed[1]!)).body).toMatchObject({ code: 'environment_busy', operationId: second.body.id });
  for (const { body } of [first, second]) await finish(await claimed(body.id), 'succeeded');
  expect([await state(failed[0]!), await state(failed[1]!)]).toEqual(['deleted', 'deleted']);
  await finish(await claimed(again.body.id), 'succeeded');
  expect(await state(again.body.environmentId)).toBe('ready');
  expect((await gateway.create(name)).body).toMatchObject({
    code: 'environment_exists',
    environmentId: again.body.environmentId,
  });
});

test('a failed environment whose delete comes to nothing is failed as before, and takes the name from nobody', async () => {
  const { id, create, name } = await created();
  await finish(await claimed(create), 'failed');
  const { body } = await remove(id);
  expect((await gateway.create(name)).status).toBe(202);
  await finish(await claimed(body.id), 'failed');
  expect(await state(id)).toBe('failed');
  expect(await cancel((await remove(id)).body.id)).toMatchObject({ status: 202, body: { state: 'cancelled' } });
  expect(await state(id)).toBe('failed');
  const claim = await claimed((await remove(id)).body.id);
  await catalog.transaction((tx) =>
    blockOperation(tx, claim, { code: 'in_doubt', message: 'in doubt' }, { kind: 'in_doubt', evidence: {} }),
  );
  expect(await state(id)).toBe('failed');
});

test('a delete that is given up before it did anything leaves the environment as it was; one that did something does not', async () => {
  const { id } = await ready();
  const idle = await claimed((await remove(id)).body.id);
  await effect(idle, 'absent');
  await finish(idle, 'failed');
  expect(await state(id)).toBe('ready');
  const begun = await claimed((await remove(id)).body.id);
  await effect(begun, 'applied');
  await finish(begun, 'failed');
  expect(await state(id)).toBe('degraded');
});

test('a delete with an ETag is refused once the environment has changed', async () => {
  const { id, create } = await created();
  const before = (await gateway.get(`/v1/environments/${id}`)).headers.get('etag')!;
  expect((await gateway.get(`/v1/environments/${id}`, { headers: { 'if-none-match': before } })).status).toBe(304);
  await finish(await claimed(create), 'succeeded');
  expect((await remove(id, { 'if-match': before })).body).toMatchObject({ status: 412, code: 'precondition_failed' });
  const now = (await gateway.get(`/v1/environments/${id}`)).headers.get('etag')!;
  expect(now).not.toBe(before);
  expect((await remove(id, { 'if-match': now })).status).toBe(202);
});

test('events follow an operation to its end', async () => {
  const { create } = await created();
  const response = await fetch(`${gateway.url}/v1/operations/${create}/events`, {
    headers: { authorization: 'Bearer sfk_admin' },
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const until = async (part: string) => {
    while (!text.includes(part)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`ended without ${part}`);
      text += value;
    }
  };
  await until('"state":"queued"');
  const claim = await claimed(create);
  await until('"state":"running"');
  await effect(claim, 'applied');
  await until('"outcome":"applied"');
  await finish(claim, 'succeeded');
  await until('"state":"succeeded"');
  while (!(await reader.read()).done);
  const events = text.split('\n\n').filter((event) => event.includes('data:'));
  for (const event of events) expect(event).toContain('event: operation');
});
