import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptEnvironmentCreate, Catalog, claimJob, noteProgress, recordEffect } from '#catalog';
import { open, readSealingKey, registryAad, serviceSecretAad } from '#settings';
import type { OwnDatabase } from './catalog-server.ts';
import { addKey, type Answer, ENGINE, GatewayUnderTest, HOST, seededDatabase } from './gateway-world.ts';

let database: OwnDatabase;
let gateway: GatewayUnderTest;
let catalog: Catalog;
beforeAll(async () => {
  database = await seededDatabase();
  gateway = await (await GatewayUnderTest.start(database.url)).ready();
  catalog = Catalog.open({ url: database.url, applicationName: 'test', maxConnections: 4 });
});
afterAll(async () => {
  await gateway.stop();
  await catalog.close();
  await database.drop();
});
beforeEach(() => hostTakes({ networks: 400 }));

interface HostTakes {
  readonly networks: number;
  readonly ports?: string | null;
  readonly profiles?: string;
}

async function hostTakes({
  networks,
  ports = '[20000,20100)',
  profiles = '{local,private}',
}: HostTakes): Promise<void> {
  await database.query('update hosts set service_networks_max = $1, service_ports = $2', [networks, ports]);
  await database.query('update engines set profiles = $1', [profiles]);
}

async function used(): Promise<number> {
  const { networks } = await one(
    `select coalesce(sum(networks), 0)::integer as networks from environments where state not in ('deleted', 'failed')`,
  );
  return networks as number;
}

async function one(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>> {
  const rows = await database.query<Record<string, unknown>>(text, values);
  expect(rows).toHaveLength(1);
  return rows[0]!;
}

/** Rows of every table: nothing is made where nothing changes. */
async function everything(): Promise<readonly object[]> {
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' order by 1`,
  );
  const counts = tables.map(({ name }) => `select '${name}' as name, count(*) from ${name}`);
  return database.query(counts.join(' union all '));
}

const API = { name: 'api', image: 'registry.example.com/team/api:1.2' };
const CANARY = 'canary-5d1f0c';

function create(
  name: string,
  services: unknown,
  more: Omit<Parameters<typeof gateway.create>[1] & object, 'body'> = {},
): Promise<Answer> {
  return gateway.create(name, { ...more, body: { name, services } });
}

interface ShownService {
  readonly name: string;
  readonly state: string;
  readonly ports: readonly { readonly host: number | null }[];
}

async function shown(environmentId: string): Promise<{ answer: Answer; services: readonly ShownService[] }> {
  const answer = await gateway.get(`/v1/environments/${environmentId}`);
  return { answer, services: (answer.body as unknown as { services: readonly ShownService[] }).services };
}

describe('an accepted create', () => {
  const WEB = {
    name: 'web',
    image: `team/web@sha256:${'0'.repeat(64)}`,
    command: ['serve', '--port', '8080'],
    env: { MODE: 'test' },
    secrets: { 'api.key': CANARY, SESSION: `${CANARY}-two` },
    ports: [8080],
    health: { http: { port: 8080, path: '/up' }, deadlineSeconds: 30 },
    limits: { memory: '1g', cpus: 0.5, pids: 64 },
    readOnly: true,
  };
  let environmentId: string;
  beforeAll(async () => {
    await hostTakes({ networks: 400 });
    const answer = await create('whole', [WEB, API]);
    expect(answer.status).toBe(202);
    environmentId = answer.body.environmentId;
  });

  test('has written its services in order, with everything that was asked for and its default', async () => {
    const rows = await database.query(
      'select name, image, spec, observed from services where environment_id = $1 order by ordinal',
      [environmentId],
    );
    const { command, env, ports, health, readOnly } = WEB;
    expect(rows).toEqual([
      {
        name: 'web',
        image: WEB.image,
        spec: { command, env, ports, health, readOnly, limits: { memoryBytes: 1024 ** 3, cpus: 0.5, pids: 64 } },
        observed: null,
      },
      {
        ...API,
        spec: {
          command: [],
          env: {},
          ports: [],
          health: { deadlineSeconds: 60 },
          limits: { memoryBytes: 256 * 1024 ** 2, cpus: 1, pids: 256 },
          readOnly: false,
        },
        observed: null,
      },
    ]);
    expect(await one('select networks from environments where id = $1', [environmentId])).toEqual({ networks: 2 });
    const operation = await one('select request from operations where environment_id = $1', [environmentId]);
    expect(operation['request']).toMatchObject({ services: [{ name: 'web' }, { name: 'api' }] });
  });

  test('has sealed its secrets to their places: the catalog holds none in plain text, and neither does the log', async () => {
    const sealed = await database.query<{ id: string; name: string; sealed: Buffer }>(
      'select s.id, x.name, x.sealed from service_secrets x join services s on s.id = x.service_id where s.environment_id = $1 order by x.name',
      [environmentId],
    );
    const key = readSealingKey(join(gateway.home, 'host', 'key'));
    expect(sealed.map(({ id, name, sealed: value }) => [name, open(key, value, serviceSecretAad(id, name))])).toEqual([
      ['SESSION', `${CANARY}-two`],
      ['api.key', CANARY],
    ]);
    await expectNowhere([CANARY]);
  });

  test('B112: is shown to the weakest role in list and detail, with names of secrets and variables and no value', async () => {
    const key = await addKey(database, 'weakest', 'viewer');
    const detail = await gateway.get(`/v1/environments/${environmentId}`, { key });
    const list = await gateway.get('/v1/projects/default/environments?name=whole', { key });
    expect(list.body.items).toEqual([detail.body]);
    expect((await shown(environmentId)).services).toEqual([
      {
        name: 'web',
        image: WEB.image,
        imageDigest: null,
        state: 'pending',
        ports: [{ container: 8080, address: '127.0.0.1', host: null }],
        env: ['MODE'],
        secrets: ['SESSION', 'api.key'],
        health: WEB.health,
        limits: { memory: 1024 ** 3, cpus: 0.5, pids: 64 },
        readOnly: true,
        user: null,
        observedAt: null,
      },
      expect.objectContaining({ ...API, state: 'pending', ports: [], env: [], secrets: [] }),
    ]);
  });

  test('is shown as the watcher sees it, and each look that saw a change is another version', async () => {
    const [service] = await database.query<{ id: string }>(
      `select id from services where environment_id = $1 and name = 'web'`,
      [environmentId],
    );
    const identities = {
      services: { [service!.id]: { containerId: 'c', imageId: 'sha256:1', ports: { 8080: 20_007 } } },
    };
    await database.query(`update environments set identities = $2, state = 'ready' where id = $1`, [
      environmentId,
      identities,
    ]);
    const ready = await shown(environmentId);
    expect(ready.services[0]).toMatchObject({ state: 'running', imageDigest: 'sha256:1', ports: [{ host: 20_007 }] });
    const etag = ready.answer.headers.get('etag')!;
    const again = { headers: { 'if-none-match': etag } };
    expect((await gateway.get(`/v1/environments/${environmentId}`, again)).status).toBe(304);

    const reason = { code: 'service_exited', message: 'service web has ended with code 137' };
    const observed = {
      state: 'exited',
      exitCode: 137,
      outOfMemory: true,
      restarts: 2,
      startedAt: '2026-01-01T00:00:00Z',
    };
    await database.query(`update services set observed = $2, observed_at = '2026-01-01 00:01:00Z' where id = $1`, [
      service!.id,
      observed,
    ]);
    const seen = await gateway.get(`/v1/environments/${environmentId}`, again);
    expect(seen.status).toBe(200);
    expect(seen.body).toMatchObject({
      reason: null,
      services: [{ ...observed, observedAt: '2026-01-01T00:01:00.000Z' }, {}],
    });
    // The watcher looks again and sees the same: only the date is new.
    await database.query(`update services set observed_at = '2026-01-01 00:02:00Z' where id = $1`, [service!.id]);
    const same = { headers: { 'if-none-match': seen.headers.get('etag')! } };
    expect((await gateway.get(`/v1/environments/${environmentId}`, same)).status).toBe(304);

    await database.query(`update environments set state = 'degraded', reason = $2 where id = $1`, [
      environmentId,
      reason,
    ]);
    const degraded = await gateway.get(`/v1/environments/${environmentId}`, again);
    expect(degraded.body).toMatchObject({ state: 'degraded', reason });
    const list = '/v1/projects/default/environments?state=';
    expect((await gateway.get(`${list}degraded`)).body.items.map(({ id }) => id)).toEqual([environmentId]);
    expect((await gateway.get(`${list}blocked`)).body.items).toEqual([]);
    expect((await gateway.get(`${list}odd`)).body.code).toBe('invalid_request');
    const stale = await gateway.request('DELETE', `/v1/environments/${environmentId}`, {
      headers: { 'if-match': etag },
    });
    expect(stale.body).toMatchObject({ status: 412, code: 'precondition_failed' });
    // What a service does meanwhile is no reason to refuse.
    const fresh = { headers: { 'if-match': degraded.headers.get('etag')! } };
    await database.query(`update services set observed = null, observed_at = null where id = $1`, [service!.id]);
    await database.query(`update operations set state = 'succeeded' where environment_id = $1`, [environmentId]);
    expect((await gateway.request('DELETE', `/v1/environments/${environmentId}`, fresh)).status).toBe(202);
  });
});

/** In no table, and in nothing that the gateway wrote. */
async function expectNowhere(secrets: readonly string[]): Promise<void> {
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  for (const { name } of tables) {
    const rows = await database.query<{ text: string }>(`select to_jsonb(t)::text as text from ${name} t`);
    const text = rows.map((row) => row.text).join('\n');
    for (const secret of secrets)
      for (const form of [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret).toString('base64')])
        expect([name, text.includes(form)]).toEqual([name, false]);
  }
  for (const secret of secrets) expect(gateway.output).not.toContain(secret);
}

test('an environment without services is shown without any, and needs no network', async () => {
  await hostTakes({ networks: 0, ports: null, profiles: '{local}' });
  const { body, status } = await create('plain', []);
  expect(status).toBe(202);
  expect(await shown(body.environmentId)).toMatchObject({ services: [], answer: { body: { reason: null } } });
});

test('all faults of a body come at once, and nothing is made', async () => {
  const before = await everything();
  const { status, body, text } = await gateway.create('', {
    body: {
      name: 'pg_x',
      services: [
        {
          name: 'db',
          image: 'Team/api',
          secrets: { 'ca.pem': CANARY, b: `${CANARY}\0` },
          [CANARY.slice(0, 6)]: CANARY,
        },
        {
          name: 'web',
          image: 'a',
          limits: { memory: '1k' },
          health: { http: { port: 1, path: '/' }, tcp: { port: 1 } },
        },
        { name: 'web', image: 'https://a' },
      ],
    },
  });
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' });
  expect(body.errors.map(({ field }) => field)).toEqual([
    'name',
    'services[0].name',
    'services[0].image',
    'services[0].secrets.ca.pem',
    'services[0].secrets.b',
    'services[0].canary',
    'services[1].health',
    'services[1].limits.memory',
    'services[2].image',
    'services[2].name',
  ]);
  expect(text).not.toContain(CANARY);
  expect(await everything()).toEqual(before);
});

test('a body is as large as a body may be, and no larger', async () => {
  const value = 'x'.repeat(64 * 1024);
  const asked = (count: number): unknown => [
    { ...API, secrets: Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, value])) },
  ];
  expect((await create('large', asked(3))).status).toBe(202);
  expect((await create('too-large', asked(4))).body).toMatchObject({ status: 413, code: 'body_too_large' });
});

describe('what the host has no room or no way for is refused before anything is made', () => {
  const PUBLISHED = { ...API, ports: [80] };

  test.each<[string, HostTakes, unknown, string]>([
    ['networks are used up', { networks: 0 }, API, 'insufficient_capacity'],
    ['one network is left and two are needed', { networks: 1 }, PUBLISHED, 'insufficient_capacity'],
    ['the host publishes nothing', { networks: 400, ports: null }, PUBLISHED, 'ports_unavailable'],
    ['the engine lets no services in', { networks: 400, profiles: '{local}' }, API, 'services_unavailable'],
  ])('%s', async (what, takes, service, code) => {
    await hostTakes({ ...takes, networks: (await used()) + takes.networks });
    const before = await everything();
    const headers = { 'idempotency-key': what.replaceAll(' ', '-') };
    expect((await create('refused', [service], { headers })).body).toMatchObject({ status: 409, code });
    expect(await everything()).toEqual(before);
    // Neither the name nor the key is used up by it.
    await hostTakes({ networks: (await used()) + 2 });
    const { status, body } = await create('refused', [service], { headers });
    expect(status).toBe(202);
    await database.query(`update environments set state = 'failed' where id = $1`, [body.environmentId]);
  });

  test('without ports a host that publishes nothing will do, and so will an engine that is being made', async () => {
    await hostTakes({ networks: 400, ports: null });
    expect((await create('unpublished', [API])).status).toBe(202);
    await hostTakes({ networks: 400, profiles: '{local}' });
    await database.query(`update engines set state = 'creating'`);
    expect((await create('early', [API])).status).toBe(202);
    await database.query(`update engines set state = 'ready'`);
  });

  test('of many that want the last networks at once, as many are accepted as there are', async () => {
    await hostTakes({ networks: (await used()) + 3 });
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => create(`last-${n}`, [API])));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      ...Array.from({ length: 3 }, () => 202),
      ...Array.from({ length: 9 }, () => 409),
    ]);
    for (const { status, body } of answers) if (status === 409) expect(body.code).toBe('insufficient_capacity');
  });

  test('a network is free again once its environment is gone', async () => {
    const { body } = await create('going', [API]);
    await hostTakes({ networks: await used() });
    expect((await create('next', [API])).status).toBe(409);
    await database.query(`update environments set state = 'deleted' where id = $1`, [body.environmentId]);
    expect((await create('next', [API])).status).toBe(202);
  });

  test('B122: on a full host a name that is taken is still told with the id of the one that has it', async () => {
    const { body } = await create('there', [API]);
    await hostTakes({ networks: 0, ports: null, profiles: '{local}' });
    expect((await create('there', [API])).body).toMatchObject({
      code: 'environment_exists',
      environmentId: body.environmentId,
    });
  });

  test('a request whose first try commits while its second one waits is accepted, not refused for its own network', async () => {
    await hostTakes({ networks: (await used()) + 1 });
    const ids = { operationId: randomUUID(), jobId: randomUUID(), environmentId: randomUUID() };
    const { id: projectId } = await one(`select id from projects where name = 'default'`);
    const request = {
      ...ids,
      projectId: projectId as string,
      requestedBy: {
        keyId: (await one(`select id from api_keys where name = 'admin'`))['id'] as string,
        name: 'admin',
      },
      engine: { id: ENGINE, hostId: HOST },
      name: 'twice',
      databaseName: 'twice_1',
      profile: 'local',
      extensions: [],
      connectionLimit: 20,
      labels: {},
      logins: [],
      services: [
        {
          id: randomUUID(),
          ...API,
          spec: {
            command: [],
            env: {},
            ports: [],
            health: { deadlineSeconds: 60 },
            limits: { memoryBytes: 1, cpus: 1, pids: 1 },
            readOnly: false,
          },
          secrets: [],
        },
      ],
    };
    const accept = (): Promise<string> =>
      catalog.transaction(async (tx) => (await acceptEnvironmentCreate(tx, request)).answer);
    expect((await Promise.all([accept(), accept(), accept()])).sort()).toEqual(['accepted', 'already', 'already']);
  });
});

describe('an idempotency key', () => {
  const headers = { 'idempotency-key': 'with-secrets' };
  const services = (value: string): unknown => [{ ...API, secrets: { key: value } }];

  test('with secrets in the body gives the same answer to the same request, and is a mismatch for another secret', async () => {
    const answers = [
      await create('kept', services('1234'), { headers }),
      await create('kept', services('1234'), { headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    expect(answers[1]!.body.id).toBe(answers[0]!.body.id);
    expect((await create('kept', services('1235'), { headers })).body).toMatchObject({ code: 'idempotency_mismatch' });
  });

  test('keeps nothing that a short secret could be guessed from', async () => {
    const { digest } = await one(`select request_digest as digest from idempotency_keys where key = 'with-secrets'`);
    const canonical = [
      ['name', 'kept'],
      [
        'services',
        [
          [
            ['image', API.image],
            ['name', 'api'],
            ['secrets', [['key', '1234']]],
          ],
        ],
      ],
    ];
    const text = JSON.stringify(['POST', '/v1/projects/default/environments', canonical]);
    const plain = createHash('sha256').update(text).digest();
    expect((digest as Buffer).equals(plain)).toBe(false);
    // The same computation, for a body without secrets, is what is kept.
    await create('open', [API], { headers: { 'idempotency-key': 'open' } });
    const open_ = await one(`select request_digest as digest from idempotency_keys where key = 'open'`);
    const openText = JSON.stringify([
      'POST',
      '/v1/projects/default/environments',
      [
        ['name', 'open'],
        [
          'services',
          [
            [
              ['image', API.image],
              ['name', 'api'],
            ],
          ],
        ],
      ],
    ]);
    expect((open_['digest'] as Buffer).equals(createHash('sha256').update(openText).digest())).toBe(true);
  });
});

test('B119: a published port is shown where it is, whatever the host says of new ones since', async () => {
  const { body } = await create('published', [
    { ...API, ports: [80] },
    { ...API, name: 'web', ports: [80] },
  ]);
  const [made] = await database.query<{ id: string }>(
    'select id from services where environment_id = $1 order by ordinal',
    [body.environmentId],
  );
  const claimId = randomUUID();
  await database.query(
    `insert into claims (id, job_id, operation_id, host_id, attempt, claim_number, ended_at)
     select $1, id, operation_id, host_id, 1, 100000, now() from jobs where operation_id = $2`,
    [claimId, body.id],
  );
  await database.query(
    `insert into effects (id, operation_id, claim_id, ordinal, kind, spec, outcome) values ($1, $2, $3, 1, 'container', $4, 'applied')`,
    [randomUUID(), body.id, claimId, { serviceId: made!.id, published: { address: '127.0.0.1' } }],
  );
  const identities = { services: { [made!.id]: { containerId: 'c', imageId: 'sha256:1', ports: { 80: 20_001 } } } };
  await database.query('update environments set identities = $2 where id = $1', [body.environmentId, identities]);
  await database.query(`update hosts set service_address = '10.1.2.3'`);
  try {
    expect((await shown(body.environmentId)).services.map(({ ports }) => ports)).toEqual([
      [{ container: 80, address: '127.0.0.1', host: 20_001 }],
      [{ container: 80, address: '10.1.2.3', host: null }],
    ]);
  } finally {
    await database.query(`update hosts set service_address = '127.0.0.1'`);
  }
});

test('an operation tells of each effect which service it is about, and how far the effect in hand is, as it changes', async () => {
  const { body } = await create('followed', [API, { ...API, name: 'web' }]);
  const stream = await fetch(`${gateway.url}/v1/operations/${body.id}/events`, {
    headers: { authorization: 'Bearer sfk_admin' },
  });
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const until = async (part: string): Promise<void> => {
    while (!text.includes(part)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`ended without ${part}`);
      text += value;
    }
  };
  const job = await one('select id from jobs where operation_id = $1', [body.id]);
  const services = await database.query<{ id: string }>(
    'select id from services where environment_id = $1 order by ordinal',
    [body.environmentId],
  );
  const answer = await catalog.transaction((tx) => claimJob(tx, job['id'] as string, HOST, randomUUID()));
  if (answer.answer !== 'claimed') throw new Error(answer.answer);
  const { claimId, claimNumber, operationId } = answer.claim;
  const record = (kind: 'image' | 'network', spec: Readonly<Record<string, string>>) =>
    catalog.transaction((tx) =>
      recordEffect(tx, {
        effectId: randomUUID(),
        token: randomUUID(),
        operationId,
        claimId,
        claimNumber,
        engineId: ENGINE,
        kind,
        spec,
        resource: 'x',
      }),
    );
  await record('image', { image: API.image, serviceId: services[1]!.id });
  await until('"kind":"image","service":"web"');
  for (const progress of ['pulling: 10 %', 'pulling: 90 %']) {
    await catalog.transaction((tx) => noteProgress(tx, operationId, claimId, progress));
    await until(`"progress":"${progress}"`);
  }
  await record('network', { pool: '10.0.0.0/8' });
  const now = await gateway.get(`/v1/operations/${operationId}`);
  expect(now.body).not.toHaveProperty('progress');
  expect(now.body).toMatchObject({ effects: [{ kind: 'image', service: 'web' }, { kind: 'network' }] });
  expect((now.body as unknown as { effects: object[] }).effects[1]).not.toHaveProperty('service');
  await reader.cancel();
});

describe('registries', () => {
  const PATH = '/v1/admin/registries';
  const SERVER = 'registry.example.com:5000';
  const set = (more: object = {}): Promise<Answer> =>
    gateway.request('POST', PATH, { body: { server: SERVER, username: 'puller', password: CANARY, ...more } });

  test('are set, replaced, listed and removed; a password is sealed, and never shown', async () => {
    const made = await set();
    expect([made.status, made.body]).toEqual([
      201,
      { server: SERVER, username: 'puller', createdAt: expect.any(String) },
    ]);
    expect(made.headers.get('location')).toBe(`${PATH}/${encodeURIComponent(SERVER)}`);
    const replaced = await set({ username: 'other', password: `${CANARY}-new` });
    expect([replaced.status, replaced.body]).toEqual([
      200,
      { ...made.body, username: 'other', createdAt: expect.any(String) },
    ]);
    expect((await set({ server: 'docker.io' })).status).toBe(201);
    const list = await gateway.get(PATH);
    expect(list.body.items).toEqual([expect.objectContaining({ server: 'docker.io' }), replaced.body]);

    const { sealed } = await one('select password_sealed as sealed from registries where server = $1', [SERVER]);
    const key = readSealingKey(join(gateway.home, 'host', 'key'));
    expect(open(key, sealed as Buffer, registryAad(SERVER))).toBe(`${CANARY}-new`);
    await expectNowhere([CANARY]);

    const removed = await gateway.request('DELETE', `${PATH}/${encodeURIComponent(SERVER)}`);
    expect([removed.status, removed.body]).toEqual([200, replaced.body]);
    const again = await gateway.request('DELETE', `${PATH}/${encodeURIComponent(SERVER)}`);
    expect(again.body).toMatchObject({ status: 404, code: 'not_found' });
    const audit = await database.query('select actor, action, detail from audit where subject = $1 order by id', [
      SERVER,
    ]);
    expect(audit).toEqual([
      { actor: 'key admin', action: 'registry.set', detail: { username: 'puller' } },
      { actor: 'key admin', action: 'registry.set', detail: { username: 'other' } },
      { actor: 'key admin', action: 'registry.remove', detail: {} },
    ]);
  });

  test('are the administrator’s alone, to see and to change', async () => {
    const key = await addKey(database, 'operator', 'operator');
    expect((await gateway.get(PATH, { key })).status).toBe(403);
    expect((await gateway.request('POST', PATH, { key, body: {} })).status).toBe(403);
    expect((await gateway.request('DELETE', `${PATH}/docker.io`, { key })).status).toBe(403);
  });

  test('a body that is wrong is refused with all its faults, and without its password', async () => {
    const { body, text, status } = await set({ server: 'https://registry.example.com', username: '', other: 1 });
    expect(status).toBe(400);
    expect(body.errors.map(({ field }) => field)).toEqual(['server', 'username', 'other']);
    expect(text).not.toContain(CANARY);
  });

  test('two that set the same one at once leave one of them', async () => {
    const names = Array.from({ length: 8 }, () => randomBytes(4).toString('hex'));
    const answers = await Promise.all(names.map((username) => set({ server: 'race.example.com', username })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7);
    expect(names).toContain(
      (await one(`select username from registries where server = 'race.example.com'`))['username'],
    );
  });
});
