import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PostgresProxy, TcpProxy, waitUntil } from '#testing';
import type { OwnDatabase } from './catalog-server.ts';
import { CommitRelay } from './commit-relay.ts';
import { GatewayUnderTest, seededDatabase } from './gateway-world.ts';

/** DESIGN: an answer in a few seconds, whatever the catalog does. */
const ANSWER_MS = 5_500;

let database: OwnDatabase;
let gateway: GatewayUnderTest | undefined;
let proxy: TcpProxy;
beforeEach(async () => {
  database = await seededDatabase();
  proxy = await TcpProxy.inFrontOf(database.url);
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  await proxy.close();
  await database.drop();
});

async function started(url: string): Promise<GatewayUnderTest> {
  gateway = await (await GatewayUnderTest.start(url)).ready();
  return gateway;
}

async function expectRefusedSoon(of: GatewayUnderTest): Promise<void> {
  const asks = [
    () => of.get('/v1/projects'),
    () => of.get('/v1/operations'),
    () => of.get('/v1/environments/0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d'),
    () => of.create('down'),
    () => of.get('/health/ready'),
  ];
  const began = performance.now();
  const answers = await Promise.all(asks.map((ask) => ask()));
  expect(performance.now() - began).toBeLessThan(ANSWER_MS);
  for (const { status, body, headers } of answers) {
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'catalog_unavailable' });
    expect(headers.get('retry-after')).toBe('2');
  }
  expect((await of.get('/health/live')).status).toBe(200);
  expect((await of.get('/metrics')).text).toContain('surefoot_catalog_up 0');
}

async function expectServes(of: GatewayUnderTest, name: string): Promise<void> {
  await of.ready();
  expect((await of.get('/v1/projects')).status).toBe(200);
  expect((await of.create(name)).status).toBe(202);
}

test('a gateway that starts while the catalog is down answers, and serves once it is there', async () => {
  await proxy.refuse();
  gateway = await GatewayUnderTest.start(proxy.through(database.url));
  await expectRefusedSoon(gateway);
  await proxy.accept();
  await expectServes(gateway, 'late');
}, 60_000);

test('the catalog goes away and comes back: 503 meanwhile, nothing to restart after', async () => {
  const of = await started(proxy.through(database.url));
  await expectServes(of, 'before');
  await proxy.refuse();
  proxy.cut();
  await expectRefusedSoon(of);
  await proxy.accept();
  await expectServes(of, 'after');
  const names = await database.query<{ name: string }>('select name from environments order by name');
  expect(names.map(({ name }) => name)).toEqual(['after', 'before']);
}, 60_000);

test('a catalog that takes bytes and never answers is given up in time, and B154: its connections do not pile up', async () => {
  const of = await started(proxy.through(database.url));
  proxy.freeze();
  await expectRefusedSoon(of);
  await Promise.all(Array.from({ length: 50 }, () => of.get('/v1/projects')));
  proxy.thaw();
  await expectServes(of, 'thawed');
  const [row] = await database.query<{ count: number }>(
    `select count(*)::int from pg_stat_activity where datname = current_database() and application_name = 'surefoot gateway'`,
  );
  expect(row!.count).toBeLessThanOrEqual(10);
}, 60_000);

test('a request in hand while every connection is cut is answered or refused, and B152: the pool is whole after', async () => {
  const of = await started(proxy.through(database.url));
  for (let round = 0; round < 5; round += 1) {
    const answers = Array.from({ length: 20 }, (_, n) => of.create(`cut-${round}-${n}`));
    proxy.cut();
    for (const { status } of await Promise.all(answers)) expect([202, 503]).toContain(status);
  }
  await expectServes(of, 'whole');
  const together = await Promise.all(Array.from({ length: 40 }, () => of.get('/v1/projects')));
  expect(together.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
}, 60_000);

test('B152: fifty failed writes leave no connection taken', async () => {
  const of = await started(database.url);
  await of.create('taken');
  const refused = await Promise.all(Array.from({ length: 50 }, () => of.create('taken')));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([409]));
  const [row] = await database.query<{ count: number }>(
    `select count(*)::int from pg_stat_activity
      where datname = current_database() and application_name = 'surefoot gateway' and state <> 'idle'`,
  );
  expect(row!.count).toBe(0);
  await expectServes(of, 'free');
}, 60_000);

test.each(['request', 'reply'] as const)(
  'a lost %s of COMMIT makes one operation, and the answer tells of it',
  async (what) => {
    const relay = await CommitRelay.inFrontOf(database.url);
    try {
      const of = await started(relay.url);
      for (const [name, headers] of [
        ['plain', {}],
        ['keyed', { 'idempotency-key': 'k' }],
      ] as const) {
        relay.loseNext(what);
        const { status, body } = await of.create(name, { headers });
        expect({ status, name: body.kind }).toEqual({ status: 202, name: 'environment.create' });
        const made = await database.query<{ id: string }>(`select id from operations where request ->> 'name' = $1`, [
          name,
        ]);
        expect(made).toEqual([{ id: body.id }]);

        relay.loseNext(what);
        const removed = await of.request('DELETE', `/v1/environments/${body.environmentId}`);
        expect(removed.status).toBe(202);
        const deletes = await database.query<{ id: string }>(
          `select id from operations where environment_id = $1 and kind = 'environment.delete'`,
          [body.environmentId],
        );
        expect(deletes).toEqual([{ id: removed.body.id }]);
      }
      expect(relay.lost).toBe(4);
    } finally {
      await gateway?.stop();
      await relay.close();
    }
  },
  60_000,
);

test.each(['queued', 'running'] as const)(
  'a cancel of a %s operation that the gateway repeats, not knowing what became of it, succeeds and is done once',
  async (state) => {
    const relay = await PostgresProxy.inFrontOf(database.url);
    try {
      const of = await started(relay.through(database.url));
      for (const [name, headers] of [
        ['plain', {}],
        ['keyed', { 'idempotency-key': 'k' }],
      ] as const) {
        const { body } = await of.create(name);
        await database.query('update operations set state = $2 where id = $1', [body.id, state]);
        let commits = 0;
        relay.rule((text) => {
          if (/pg_xact_status/.test(text)) return 'lose-request';
          return /^commit/i.test(text) && ++commits === 1 ? 'lose-reply' : 'pass';
        });
        const cancelled = await of.request('POST', `/v1/operations/${body.id}/cancel`, { headers });
        expect(commits).toBe(2);
        expect(cancelled).toMatchObject({ status: 202, body: { state: state === 'queued' ? 'cancelled' : 'running' } });
        const audit = await database.query(`select 1 from audit where action = 'operation.cancel' and subject = $1`, [
          body.id,
        ]);
        expect(audit).toHaveLength(1);
        // Another cancel is another's: it is not taken for that one.
        const second = await of.request('POST', `/v1/operations/${body.id}/cancel`);
        expect(second.status).toBe(state === 'queued' ? 409 : 202);
      }
    } finally {
      await gateway?.stop();
      await relay.close();
    }
  },
  60_000,
);

test('a stream of events goes on after the catalog was away', async () => {
  const of = await started(proxy.through(database.url));
  const { body } = await of.create('followed');
  const response = await fetch(`${of.url}/v1/operations/${body.id}/events`, {
    headers: { authorization: 'Bearer sfk_admin' },
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  await proxy.refuse();
  proxy.cut();
  await expectRefusedSoon(of);
  await proxy.accept();
  await of.request('POST', `/v1/operations/${body.id}/cancel`).catch(() => undefined);
  await of.ready();
  await of.request('POST', `/v1/operations/${body.id}/cancel`);
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  expect(text).toContain('"state":"cancelled"');
}, 60_000);

test('a gateway that is older than its catalog does not serve it', async () => {
  await database.query(`insert into migrations (timestamp, name) values (1900000000000, 'Future1900000000000')`);
  const old = await GatewayUnderTest.start(database.url).catch((error: unknown) => error);
  if (old instanceof GatewayUnderTest) {
    await waitUntil('it has ended', () => old.ended);
    expect(old.output).toContain('Future1900000000000');
    expect(await old.stop()).toBe(1);
  } else expect(String(old)).toContain('Future1900000000000');
});

test('a gateway whose catalog is about to be migrated waits for that', async () => {
  const [newest] = await database.query<{ name: string; timestamp: string }>(
    'delete from migrations where id = (select max(id) from migrations) returning name, timestamp',
  );
  gateway = await GatewayUnderTest.start(database.url);
  expect((await gateway.get('/health/ready')).status).toBe(503);
  await database.query('insert into migrations (timestamp, name) values ($1, $2)', [newest!.timestamp, newest!.name]);
  await expectServes(gateway, 'migrated');
}, 60_000);
