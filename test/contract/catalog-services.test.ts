/** What the catalog does for services: their place in a situation, the watcher's judgements, starts after a stop. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ServiceObservation } from '#catalog';
import {
  cancelOperation,
  finishOperation,
  judgeEnvironment,
  loadOperation,
  noteObservations,
  noteProgress,
  recordEffect,
  requestServicesStart,
  settleEffect,
  watchedServices,
} from '#catalog';
import type { Identities, Situation } from '#protocol';
import { CatalogWorld } from './catalog-world.ts';

let world: CatalogWorld;
beforeAll(async () => {
  world = await CatalogWorld.make();
  await world.database.query(
    `update hosts set service_networks_max = 9, service_ports = '[20000,29999]', service_address = '127.0.0.2'`,
  );
});
afterAll(async () => world.remove());

const SPEC = { command: [], env: {}, ports: [8080], health: { deadlineSeconds: 60 }, limits: {}, readOnly: false };
const RUNNING: ServiceObservation = { state: 'running', restarts: 0 };
const EXITED = { code: 'service_exited', message: 'service api ended with exit code 1' };

interface WithServices {
  readonly environmentId: string;
  readonly serviceIds: readonly string[];
}

/** An environment with services `api` and `web`, of which each has a container and a port. */
async function withServices(state: string, identities?: Identities): Promise<WithServices> {
  const environmentId = await world.environment();
  const serviceIds = [randomUUID(), randomUUID()];
  for (const [index, id] of serviceIds.entries())
    await world.database.query(
      `insert into services (id, environment_id, ordinal, name, image, spec) values ($1, $2, $3, $4, 'i', $5)`,
      [id, environmentId, index + 1, ['api', 'web'][index], JSON.stringify(SPEC)],
    );
  await world.database.query(
    `insert into service_secrets (service_id, name, sealed) values ($1, 'TOKEN', '\\x01'), ($1, 'KEY', '\\x01')`,
    [serviceIds[0]],
  );
  const services = Object.fromEntries(
    serviceIds.map((id, index) => [id, { containerId: `c-${id}`, imageId: 'i', ports: { 8080: 20_000 + index } }]),
  );
  await world.database.query(`update environments set state = $2, networks = 2, identities = $3 where id = $1`, [
    environmentId,
    state,
    JSON.stringify(identities ?? { services }),
  ]);
  return { environmentId, serviceIds };
}

const taken = ({ subject }: Situation): readonly number[] =>
  subject.type === 'environment' ? [...(subject.place.published?.taken ?? [])].sort() : [];
const stateOf = async (environmentId: string): Promise<unknown> =>
  world.one('select state, reason from environments where id = $1', [environmentId]);
const judge = (environmentId: string, reason?: { code: string; message: string }): Promise<boolean> =>
  world.catalog.transaction((tx) => judgeEnvironment(tx, world.hostId, environmentId, reason));

describe('a situation', () => {
  test('has the services in their order, names of their secrets, and where the host publishes ports', async () => {
    const other = await withServices('ready');
    const gone = await withServices('deleted');
    const { environmentId, serviceIds } = await withServices('provisioning', {});
    const job = await world.queued('environment.create', { environmentId });
    const { situation } = await loadOperation(world.catalog, job.operationId);
    expect(situation.subject).toMatchObject({
      services: [
        { id: serviceIds[0], name: 'api', image: 'i', ports: [8080], secretNames: ['KEY', 'TOKEN'] },
        { id: serviceIds[1], name: 'web', secretNames: [] },
      ],
      place: {
        networkPool: '10.1.0.0/16',
        published: { address: '127.0.0.2', ports: { from: 20_000, to: 29_999 } },
      },
    });
    expect(taken(situation)).toEqual([20_000, 20_001]);
    await world.database.query(`update environments set state = 'deleted' where id = any ($1)`, [
      [other.environmentId, gone.environmentId, environmentId],
    ]);
    expect(taken((await loadOperation(world.catalog, job.operationId)).situation)).toEqual([]);
  });

  test('of an environment without services has none, and no ports', async () => {
    const job = await world.queued();
    const { situation } = await loadOperation(world.catalog, job.operationId);
    expect(situation.subject).toMatchObject({ services: [], place: { published: undefined } });
  });

  test('knows of each effect which service it was about, and an undo counts for that one alone', async () => {
    const { environmentId, serviceIds } = await withServices('provisioning', {});
    const claim = await world.claimed(await world.queued('environment.create', { environmentId }));
    for (const kind of ['container', 'remove-service'] as const)
      for (const serviceId of kind === 'container' ? serviceIds : serviceIds.slice(0, 1)) {
        const effect = world.toRecord(claim, kind, { spec: { environmentId, serviceId } });
        await world.catalog.transaction((tx) => recordEffect(tx, effect));
        const undoes = kind === 'container' ? [] : (['container'] as const);
        await world.catalog.transaction((tx) => settleEffect(tx, world.settlementOf(effect, { undoes })));
      }
    const { situation } = await loadOperation(world.catalog, claim.operationId);
    expect(situation.effects.map(({ kind, serviceId, outcome }) => [kind, serviceId, outcome])).toEqual([
      ['container', serviceIds[0], 'undone'],
      ['container', serviceIds[1], 'applied'],
      ['remove-service', serviceIds[0], 'applied'],
    ]);
    await world.catalog.transaction((tx) => finishOperation(tx, claim, 'cancelled', undefined));
  });

  test('progress is shown for the effect in hand, and gone with the next one', async () => {
    const claim = await world.claimed(await world.queued());
    await noteProgress(world.catalog, claim.operationId, randomUUID(), 'of another claim');
    expect(await world.operation(claim.operationId)).toMatchObject({ progress: null });
    await noteProgress(world.catalog, claim.operationId, claim.claimId, 'pulling');
    expect(await world.operation(claim.operationId)).toMatchObject({ progress: 'pulling' });
    await world.recorded(claim);
    expect(await world.operation(claim.operationId)).toMatchObject({ progress: null });
    await world.catalog.transaction((tx) => finishOperation(tx, claim, 'cancelled', undefined));
  });
});

describe('the watcher', () => {
  test('is told of services that are to be well, and dates what it saw of them', async () => {
    const { environmentId, serviceIds } = await withServices('ready');
    const watched = (await watchedServices(world.catalog, world.hostId)).filter(
      (service) => service.environment_id === environmentId,
    );
    expect(watched).toMatchObject([
      { id: serviceIds[0], name: 'api', identities: { containerId: `c-${serviceIds[0]}` }, observed: null },
      { id: serviceIds[1], name: 'web' },
    ]);
    await noteObservations(world.catalog, [{ serviceId: serviceIds[0]!, observation: RUNNING }]);
    expect(await world.one('select observed, observed_at from services where id = $1', [serviceIds[0]])).toEqual({
      observed: RUNNING,
      observed_at: expect.any(Date),
    });
  });

  test.each(['provisioning', 'updating', 'deleting', 'deleted', 'failed', 'blocked'])(
    'leaves an environment alone that is %s',
    async (state) => {
      const { environmentId } = await withServices(state);
      expect(await judge(environmentId, EXITED)).toBe(false);
      expect(await stateOf(environmentId)).toEqual({ state, reason: null });
      const all = await watchedServices(world.catalog, world.hostId);
      expect(all.filter((service) => service.environment_id === environmentId)).toEqual([]);
    },
  );

  test('makes it degraded with the reason, and ready again; each is news once, and audited', async () => {
    const { environmentId } = await withServices('ready');
    expect(await judge(environmentId)).toBe(false);
    expect(await judge(environmentId, EXITED)).toBe(true);
    expect(await judge(environmentId, EXITED)).toBe(false);
    expect(await stateOf(environmentId)).toEqual({ state: 'degraded', reason: EXITED });
    expect(await judge(environmentId)).toBe(true);
    expect(await stateOf(environmentId)).toEqual({ state: 'ready', reason: null });
    const audited = await world.database.query(`select action from audit where subject = $1 order by id`, [
      environmentId,
    ]);
    expect(audited).toEqual([{ action: 'environment.degraded' }, { action: 'environment.holds' }]);
  });

  test('shows each new reason of what is degraded already, and audits it once', async () => {
    const { environmentId } = await withServices('ready');
    expect(await judge(environmentId, EXITED)).toBe(true);
    const later = { ...EXITED, message: 'service api ended with exit code 2' };
    expect(await judge(environmentId, later)).toBe(false);
    expect(await stateOf(environmentId)).toEqual({ state: 'degraded', reason: later });
    expect(await world.count('audit', 'subject = $1', [environmentId])).toBe(1);
  });

  test('does not make ready what is degraded for another reason than its own', async () => {
    const { environmentId } = await withServices('degraded');
    expect(await judge(environmentId)).toBe(false);
    await world.database.query('update environments set reason = $2 where id = $1', [
      environmentId,
      JSON.stringify({ code: 'foreign_object', message: 'a delete failed' }),
    ]);
    expect(await judge(environmentId)).toBe(false);
    expect(await judge(environmentId, EXITED)).toBe(false);
    expect(await stateOf(environmentId)).toMatchObject({ state: 'degraded', reason: { code: 'foreign_object' } });
  });

  test('does not judge while an operation is open, which decides the state itself', async () => {
    const { environmentId } = await withServices('ready');
    await world.queued('environment.delete', { environmentId });
    expect(await judge(environmentId, EXITED)).toBe(false);
  });

  test('gives no reason but its own', async () => {
    const { environmentId } = await withServices('ready');
    await expect(judge(environmentId, { code: 'other', message: 'other' })).rejects.toThrow(TypeError);
  });
});

describe('services that are found stopped when the worker starts', () => {
  const request = (environmentId: string): Promise<boolean> =>
    world.catalog.transaction((tx) => requestServicesStart(tx, world.hostId, environmentId));
  const start = async (environmentId: string): Promise<{ readonly id: string; readonly jobId: string }> => {
    const row = await world.one(
      `select o.id, j.id as "jobId" from operations o join jobs j on j.operation_id = o.id
        where o.environment_id = $1 and o.kind = 'environment.start'`,
      [environmentId],
    );
    return row as unknown as { readonly id: string; readonly jobId: string };
  };

  test('get one operation with a job and a message; asked twice it is still one', async () => {
    const { environmentId } = await withServices('degraded');
    expect(await request(environmentId)).toBe(true);
    expect(await request(environmentId)).toBe(false);
    expect(await world.count('operations', `environment_id = $1`, [environmentId])).toBe(1);
    const { jobId } = await start(environmentId);
    expect(await world.count('outbox', `message ->> 'jobId' = $1`, [jobId])).toBe(1);
    expect(await stateOf(environmentId)).toMatchObject({ state: 'updating' });
  });

  test.each(['provisioning', 'deleting', 'deleted', 'failed', 'blocked', 'updating'])(
    'of an environment that is %s are left alone',
    async (state) => {
      const { environmentId } = await withServices(state);
      expect(await request(environmentId)).toBe(false);
      expect(await stateOf(environmentId)).toMatchObject({ state });
    },
  );

  test('that could not all be started leave it degraded, with a reason that the watcher may take back', async () => {
    const { environmentId } = await withServices('ready');
    await request(environmentId);
    const claim = await world.claimed(await start(environmentId));
    const reason = { code: 'port_taken', message: 'port 20000 is taken' };
    await world.catalog.transaction((tx) => finishOperation(tx, claim, 'failed', reason));
    expect(await stateOf(environmentId)).toEqual({
      state: 'degraded',
      reason: { code: 'service_not_started', message: 'port 20000 is taken' },
    });
    const failed = async (): Promise<unknown> =>
      (await watchedServices(world.catalog, world.hostId)).find((service) => service.environment_id === environmentId)
        ?.failed_starts;
    expect(await failed()).toEqual({ count: 1, last_at: expect.stringMatching(/^20/) });
    expect(await judge(environmentId)).toBe(true);
    expect(await stateOf(environmentId)).toEqual({ state: 'ready', reason: null });
    expect(await failed()).toBeNull();
  });

  test('whose start is cancelled before it began are the watcher’s to judge', async () => {
    const { environmentId } = await withServices('ready');
    await request(environmentId);
    const { id } = await start(environmentId);
    await world.catalog.transaction((tx) =>
      cancelOperation(tx, {
        operationId: id,
        requestedBy: { name: 'admin' },
        idempotency: { apiKeyId: world.keyId, key: randomUUID(), digest: Buffer.alloc(32) },
      }),
    );
    expect(await stateOf(environmentId)).toMatchObject({ state: 'degraded', reason: { code: 'service_not_started' } });
    expect(await judge(environmentId)).toBe(true);
  });
});

describe('a delete that comes to nothing', () => {
  /** Queued, as its acceptance leaves it. */
  async function deleteOf(environmentId: string, previousState: string): Promise<{ readonly operationId: string }> {
    const created = await world.queued('environment.create', { environmentId });
    await world.database.query(`update operations set state = 'succeeded' where id = $1`, [created.operationId]);
    const remove = await world.queued('environment.delete', { environmentId });
    await world.database.query('update operations set request = $2 where id = $1', [
      remove.operationId,
      JSON.stringify({ previousState }),
    ]);
    await world.database.query(`update environments set state = 'deleting' where id = $1`, [environmentId]);
    return remove;
  }
  const cancel = (operationId: string): Promise<void> =>
    world.catalog.transaction((tx) =>
      cancelOperation(tx, {
        operationId,
        requestedBy: { name: 'admin' },
        idempotency: { apiKeyId: world.keyId, key: randomUUID(), digest: Buffer.alloc(32) },
      }),
    );

  test('leaves a degraded environment its reason, so that the watcher can take it back', async () => {
    const { environmentId } = await withServices('ready');
    await judge(environmentId, EXITED);
    await cancel((await deleteOf(environmentId, 'degraded')).operationId);
    expect(await stateOf(environmentId)).toEqual({ state: 'degraded', reason: EXITED });
    expect(await judge(environmentId)).toBe(true);
  });

  test('after a start that failed, it is not taken for an environment that could not be made', async () => {
    const { environmentId, serviceIds } = await withServices('ready');
    const remove = await deleteOf(environmentId, 'updating');
    const start = await world.queued('environment.start', { environmentId });
    await world.database.query(`update operations set state = 'failed' where id = $1`, [start.operationId]);
    await cancel(remove.operationId);
    expect(await stateOf(environmentId)).toMatchObject({ state: 'ready' });
    expect(await world.count('service_secrets', 'service_id = any ($1)', [serviceIds])).toBe(2);
  });
});

test('with the environment its services’ secrets go', async () => {
  const { environmentId, serviceIds } = await withServices('ready');
  const claim = await world.claimed(await world.queued('environment.delete', { environmentId }));
  await world.catalog.transaction((tx) => finishOperation(tx, claim, 'succeeded', undefined));
  expect(await world.count('service_secrets', 'service_id = any ($1)', [serviceIds])).toBe(0);
  expect(await world.count('services', 'environment_id = $1', [environmentId])).toBe(2);
});
