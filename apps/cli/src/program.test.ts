import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { problem, ScriptedGateway, type ScriptedAnswer } from '#testing';
import type { Environment, Operation, Service } from './api.ts';
import { runProgram } from './program.ts';

const ENVIRONMENT_ID = '9b98e2ec-29e0-4809-b9e9-471b2bac817f';
const OPERATION_ID = '5a4fd314-5631-4d27-aaab-7c6780e38265';
const CASE_ID = '0b9d2f3e-5b77-4c0e-9a55-0f6c1d2e3f40';
const COLLECTION = '/v1/projects/default/environments';
const ENVIRONMENT = `/v1/environments/${ENVIRONMENT_ID}`;
const OPERATION = `/v1/operations/${OPERATION_ID}`;

function environment(changes: Partial<Environment> = {}): Environment {
  return {
    id: ENVIRONMENT_ID,
    project: 'default',
    name: 'pr-1',
    state: 'ready',
    engine: 'main',
    host: 'local',
    profile: 'local',
    extensions: [],
    connectionLimit: 20,
    labels: {},
    reason: null,
    services: [],
    connection: {
      host: 'localhost',
      port: 15433,
      database: 'pr-1_9b98e2ec',
      users: { migrate: 'pr-1_9b98e2ec_migrate', app: 'pr-1_9b98e2ec_app', readonly: 'pr-1_9b98e2ec_readonly' },
      sslmode: 'verify-full',
    },
    createdAt: '2026-01-01T00:00:00.000Z',
    ...changes,
  };
}

function operation(state: Operation['state'], changes: Partial<Operation> = {}): Operation {
  const at = '2026-01-01T00:00:00.000Z';
  return {
    id: OPERATION_ID,
    kind: 'environment.create',
    environmentId: ENVIRONMENT_ID,
    state,
    stage: state,
    attempt: 1,
    effects: [
      { kind: 'roles', outcome: 'applied', startedAt: at, settledAt: '2026-01-01T00:00:00.012Z' },
      { kind: 'database', outcome: 'pending', startedAt: at, settledAt: null },
    ],
    reason: null,
    createdAt: at,
    finishedAt: null,
    ...changes,
  };
}

const SERVICE: Service = {
  name: 'api',
  image: 'team/api:1',
  state: 'running',
  ports: [{ container: 3000, address: '127.0.0.1', host: 20_001 }],
  env: ['MODE'],
  secrets: ['key'],
  health: { deadlineSeconds: 60 },
  limits: { memory: 256 * 1024 ** 2, cpus: 1, pids: 256 },
  readOnly: false,
  user: null,
};

let gateway: ScriptedGateway;
let out: string[];
let err: string[];
let statuses: string[];
let columns: number | undefined;
let confirmed: boolean | undefined;
let input: string;

beforeEach(async () => {
  gateway = await ScriptedGateway.start();
  out = [];
  err = [];
  statuses = [];
  columns = undefined;
  confirmed = undefined;
  input = '';
});

afterEach(() => gateway.close());

async function run(...args: readonly string[]): Promise<number> {
  const terminal = {
    columns,
    stdinIsTerminal: confirmed !== undefined,
    out: (text: string): void => void out.push(text),
    err: (text: string): void => void err.push(text),
    status: (text: string): void => void statuses.push(text),
    input: async () => input,
    confirm: async () => confirmed === true,
  };
  return runProgram(args, terminal, gateway.env);
}

function calls(): readonly string[] {
  return gateway.asked.map(({ call }) => call);
}

/** Nothing is under way for the environment but what is named. */
function underWay(...open: readonly Operation[]): void {
  for (const state of ['blocked', 'running', 'queued']) {
    const found = open.filter((candidate) => candidate.state === state);
    const call = `GET /v1/operations?environment=${ENVIRONMENT_ID}&state=${state}&limit=1`;
    const empty: ScriptedAnswer = { body: { items: [], nextCursor: null } };
    gateway.answer(call, ...(found.length === 0 ? [empty] : [{ body: { items: found, nextCursor: null } }, empty]));
  }
}

function exists(): void {
  gateway.answer(`POST ${COLLECTION}`, {
    status: 409,
    body: problem('environment_exists', { environmentId: ENVIRONMENT_ID }),
  });
}

describe('env create --wait', () => {
  test('makes the environment, tells effects as they settle, and shows what was made', async () => {
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('queued', { effects: [] }) });
    gateway.answer(`GET ${OPERATION}`, { body: operation('running') }, { body: operation('succeeded') });
    gateway.answer(`GET ${OPERATION}/events`, {
      text: `event: operation\ndata: ${JSON.stringify(operation('running'))}\n\n`,
    });
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment() });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait', '--extension', 'pgcrypto', '--label', 'team=a=b')).toBe(0);
    expect(gateway.asked[0]?.body).toEqual({ name: 'pr-1', extensions: ['pgcrypto'], labels: { team: 'a=b' } });
    expect(err).toEqual(['  roles              applied      12 ms']);
    expect(out.join()).toContain('localhost:15433');
  });

  test('with --json there is JSON on standard output and nothing on standard error', async () => {
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('succeeded') });
    gateway.answer(`GET ${OPERATION}`, { body: operation('succeeded') });
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment() });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait', '--json')).toBe(0);
    expect(JSON.parse(out.join())).toEqual(environment());
    expect(err).toEqual([]);
  });

  test('a request whose answer was lost is repeated with the same key, not made twice', async () => {
    gateway.answer(
      `POST ${COLLECTION}`,
      'drop',
      { status: 503, body: problem('catalog_unavailable') },
      {
        status: 202,
        body: operation('succeeded'),
      },
    );
    gateway.answer(`GET ${OPERATION}`, { body: operation('succeeded') });
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment() });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
    const keys = gateway.asked.slice(0, 3).map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('B122 B124: an environment that is there is shown, and that is no error', async () => {
    exists();
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment() });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
    expect(err).toEqual(['environment pr-1 exists already, it is ready']);
    expect(out.join()).toContain(ENVIRONMENT_ID);
  });

  test('what is there with other settings than asked for is refused, naming them', async () => {
    exists();
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ extensions: ['citext'] }) });
    expect(await run('env', 'create', 'pr-1', '--wait', '--extension', 'pgcrypto', '--connection-limit', '5')).toBe(3);
    expect(err[0]).toContain('it has ["citext"], asked for is ["pgcrypto"]; connectionLimit: it has 20');
  });

  test('one that another run is making is waited for', async () => {
    exists();
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'provisioning' }) }, { body: environment() });
    underWay(operation('running'));
    gateway.answer(`GET ${OPERATION}`, { body: operation('succeeded') });
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
  });

  test('B127: one that is being deleted is waited for, and then made anew', async () => {
    gateway.answer(
      `POST ${COLLECTION}`,
      { status: 409, body: problem('environment_exists', { environmentId: ENVIRONMENT_ID }) },
      { status: 202, body: operation('succeeded') },
    );
    underWay(operation('running', { kind: 'environment.delete' }));
    gateway.answer(
      `GET ${OPERATION}`,
      { body: operation('succeeded', { kind: 'environment.delete' }) },
      { body: operation('succeeded') },
    );
    gateway.answer(
      `GET ${ENVIRONMENT}`,
      { body: environment({ state: 'deleting' }) },
      { body: environment({ state: 'deleted' }) },
      { body: environment() },
    );
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
    expect(calls().filter((call) => call.startsWith('POST'))).toHaveLength(2);
  });

  test('an environment that is blocked without an operation that says so exits with 4 too', async () => {
    exists();
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'blocked' }) });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(4);
    expect(err.join('\n')).toContain('environment pr-1 is blocked');
  });

  test('one that is blocked exits with 4 and names the case', async () => {
    exists();
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'blocked' }) });
    const blocked = operation('blocked', {
      caseId: CASE_ID,
      reason: { code: 'outcome_unknown', message: 'who knows' },
    });
    underWay(blocked);
    gateway.answer(`GET ${OPERATION}`, { body: blocked });
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(4);
    expect(err.join('\n')).toContain('who knows (outcome_unknown)');
    expect(err.join('\n')).toContain(`surefoot case show ${CASE_ID}`);
  });

  test('a create that fails exits with 1 and its reason; with --json the operation is told too', async () => {
    const ended = operation('failed', { reason: { code: 'extension', message: 'no such extension' } });
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('queued') });
    gateway.answer(`GET ${OPERATION}`, { body: ended });
    expect(await run('env', 'create', 'pr-1', '--wait', '--json')).toBe(1);
    expect(out).toEqual([]);
    expect(JSON.parse(err.join())).toMatchObject({ code: 'extension', exitCode: 1, operation: { id: OPERATION_ID } });
  });

  test('a deadline exits with 6 and says how to go on', async () => {
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('queued') });
    gateway.answer(`GET ${OPERATION}`, { body: operation('queued', { waitingFor: 'the engine' }) });
    gateway.answer(`GET ${OPERATION}/events`, { text: ': nothing yet\n\n' });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait', '--timeout', '1')).toBe(6);
    expect(err.at(-2)).toContain('it is queued, waiting for the engine');
    expect(err.at(-1)).toContain(`surefoot op watch ${OPERATION_ID}`);
    gateway.answer(`GET ${OPERATION}`, { body: operation('running', { progress: 'half of it' }) });
    expect(await run('op', 'watch', OPERATION_ID, '--timeout', '1')).toBe(6);
    expect(err.at(-2)).toContain('it is running, at database: half of it');
  });

  test('a gateway that goes away in mid-operation is waited for', async () => {
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('queued') });
    gateway.answer(`GET ${OPERATION}`, { body: operation('running') }, 'drop', 'drop', {
      body: operation('succeeded'),
    });
    gateway.answer(`GET ${OPERATION}/events`, 'drop');
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment() });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
  });
});

describe('other commands', () => {
  test('without --wait a name that is taken is refused, with both ways on', async () => {
    exists();
    expect(await run('env', 'create', 'pr-1')).toBe(3);
    expect(err.at(-1)).toContain('--wait');
  });

  test('a delete is never made without a yes', async () => {
    gateway.answer(`GET ${COLLECTION}?name=pr-1`, { body: { items: [environment()], nextCursor: null } });
    expect(await run('env', 'delete', 'pr-1')).toBe(2);
    confirmed = false;
    expect(await run('env', 'delete', 'pr-1')).toBe(3);
    expect(calls().some((call) => call.startsWith('DELETE'))).toBe(false);
    confirmed = true;
    gateway.answer(`DELETE ${ENVIRONMENT}`, { status: 202, body: operation('queued', { kind: 'environment.delete' }) });
    expect(await run('env', 'delete', 'pr-1')).toBe(0);
  });

  test('a delete that waits behind a block ends with 4 at once, and names the case', async () => {
    const waiting = operation('queued', {
      kind: 'environment.delete',
      waitingFor: `a decision on case ${CASE_ID}: operation ${ENVIRONMENT_ID} (environment.create) is blocked`,
    });
    const blocked = operation('blocked', {
      id: ENVIRONMENT_ID,
      caseId: CASE_ID,
      reason: { code: 'outcome_unknown', message: 'who knows' },
    });
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'blocked' }) });
    gateway.answer(`DELETE ${ENVIRONMENT}`, { status: 202, body: waiting });
    gateway.answer(`GET ${OPERATION}`, { body: waiting });
    underWay(blocked);
    expect(await run('env', 'delete', ENVIRONMENT_ID, '--yes', '--wait')).toBe(4);
    expect(err.join('\n')).toContain('environment.create is blocked: who knows (outcome_unknown)');
    expect(err.join('\n')).toContain(`surefoot case show ${CASE_ID}`);
    underWay(blocked);
    expect(await run('op', 'watch', OPERATION_ID, '--json')).toBe(4);
    expect(JSON.parse(err.at(-1) ?? '')).toMatchObject({ code: 'blocked', exitCode: 4, operation: waiting });
  });

  test('one that begins to wait behind a block while it is watched ends with 4 then', async () => {
    const behind = (state: string): Operation =>
      operation('queued', { waitingFor: `operation ${ENVIRONMENT_ID} is ${state}` });
    gateway.answer(`GET ${OPERATION}`, { body: behind('running') });
    gateway.answer(`GET ${OPERATION}/events`, {
      text: `event: operation\ndata: ${JSON.stringify(behind('blocked'))}\n\n`,
    });
    const call = `GET /v1/operations?environment=${ENVIRONMENT_ID}&state=blocked&limit=1`;
    const blocked = operation('blocked', { id: ENVIRONMENT_ID, caseId: CASE_ID });
    gateway.answer(call, { body: { items: [], nextCursor: null } }, { body: { items: [blocked], nextCursor: null } });
    expect(await run('op', 'watch', OPERATION_ID)).toBe(4);
    expect(err.join('\n')).toContain(`surefoot case show ${CASE_ID}`);
  });

  describe('an environment that failed', () => {
    const services = [{ ...SERVICE, state: 'removed' }];
    const LAST = `GET /v1/operations?environment=${ENVIRONMENT_ID}&kind=environment.create&limit=1`;

    beforeEach(() => {
      gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'failed', services }) });
      const reason = { code: 'service_exits', message: 'service api has ended with code 1' };
      gateway.answer(LAST, { body: { items: [operation('failed', { reason })], nextCursor: null } });
    });

    test('is shown with why, where to look, and without what is not there', async () => {
      expect(await run('env', 'show', ENVIRONMENT_ID)).toBe(0);
      expect(out.join()).toContain('service api has ended with code 1 (service_exits)');
      expect(out.join()).toContain(`surefoot op show ${OPERATION_ID}`);
      expect(out.join()).not.toContain('localhost');
      expect(out.join()).not.toContain('_app');
      expect(out.join()).not.toContain('->');
    });

    test('has its last words in the operation', async () => {
      const logs = `GET ${ENVIRONMENT}/services/api/logs?tail=100`;
      for (const call of [logs, `${logs}&follow=true`])
        gateway.answer(call, { status: 409, body: problem('environment_not_ready') });
      for (const args of [[], ['--follow']]) {
        expect(await run('env', 'logs', ENVIRONMENT_ID, ...args)).toBe(3);
        expect(err.at(-1)).toBe(`  its last words are in: surefoot op show ${OPERATION_ID}`);
      }
    });
  });

  test('of two environments of a name the living one is deleted, and it is said which one that was', async () => {
    const failed = environment({ id: CASE_ID, state: 'failed' });
    gateway.answer(`GET ${COLLECTION}?name=pr-1`, { body: { items: [failed, environment()], nextCursor: null } });
    const removal = operation('succeeded', { kind: 'environment.delete' });
    gateway.answer(`DELETE ${ENVIRONMENT}`, { status: 202, body: removal });
    gateway.answer(`GET ${OPERATION}`, { body: removal });
    expect(await run('env', 'delete', 'pr-1', '--yes', '--wait')).toBe(0);
    expect(out).toEqual([`environment pr-1 (${ENVIRONMENT_ID}) is deleted`]);
    expect(await run('env', 'delete', 'pr-1', '--yes')).toBe(0);
    expect(out[1]).toContain(`environment.delete of pr-1 (${ENVIRONMENT_ID}, ready) is`);
  });

  test('a list of operations names environments, and is as wide as the terminal', async () => {
    const reason = { code: 'service_exits', message: `service api has ended: ${'x'.repeat(80)}\nlast words` };
    const items = [operation('failed', { reason, environmentName: 'pr-1' }), operation('running')];
    gateway.answer('GET /v1/operations?limit=20', { body: { items, nextCursor: null } });
    expect(await run('op', 'list')).toBe(0);
    expect(out[0]?.split('\n')).toHaveLength(3);
    expect(out[0]).toMatch(/^environment.create +pr-1 +failed +2026-01-01T00:00:00Z .*x{80} …$/m);
    columns = 110;
    expect(await run('op', 'list')).toBe(0);
    expect(out[1]?.split('\n')[1]).toMatch(/^.{109}…$/);
  });

  test('an operation that is not there is to be looked for in the list', async () => {
    for (const args of [
      ['op', 'show', 'nonsense'],
      ['op', 'watch', 'nonsense'],
      ['op', 'cancel', 'nonsense'],
    ]) {
      expect(await run(...args)).toBe(3);
      expect(err.at(-1)).toBe('  see: surefoot op list');
    }
  });

  test('the code of a reason is told once', async () => {
    const reason = { code: 'service_exits', message: 'service api has ended (service_exits)' };
    gateway.answer(`GET ${OPERATION}`, { body: operation('failed', { reason }) });
    expect(await run('op', 'show', OPERATION_ID)).toBe(0);
    expect(out.join().match(/service_exits/g)).toHaveLength(1);
    expect(await run('op', 'watch', OPERATION_ID)).toBe(1);
    expect(err.at(-2)).toBe('surefoot: environment.create failed: service api has ended (service_exits)');
  });

  test('the version is that of the package', async () => {
    expect(await run('--version')).toBe(0);
    expect(out.join()).toMatch(/^surefoot \d+\.\d+\.\d+$/);
  });

  test('of a name’s environments the living one is meant, and a name like an id is a name too', async () => {
    const failed = environment({ id: OPERATION_ID, state: 'failed' });
    gateway.answer(`GET ${COLLECTION}?name=pr-1`, { body: { items: [failed, environment()], nextCursor: null } });
    expect(await run('env', 'show', 'pr-1', '--json')).toBe(0);
    expect(JSON.parse(out.join())).toEqual(environment());
    gateway.answer(`GET ${COLLECTION}?name=${CASE_ID}`, { body: { items: [environment()], nextCursor: null } });
    expect(await run('env', 'show', CASE_ID)).toBe(0);
  });

  test('a list is read to its last page', async () => {
    gateway.answer(`GET ${COLLECTION}?`, { body: { items: [environment()], nextCursor: 'more' } });
    gateway.answer(`GET ${COLLECTION}?cursor=more`, {
      body: { items: [environment({ name: 'pr-2' })], nextCursor: null },
    });
    expect(await run('env', 'list')).toBe(0);
    expect(out.join().split('\n')).toHaveLength(3);
  });

  test('all faulty fields are told', async () => {
    const errors = [
      { field: 'name', code: 'name', message: 'a slash is not allowed' },
      { field: 'extensions[0]', code: 'pattern', message: 'no extension' },
    ];
    gateway.answer(`POST ${COLLECTION}`, { status: 400, body: problem('invalid_request', { errors }) });
    expect(await run('env', 'create', 'a/b')).toBe(2);
    expect(err).toEqual(expect.arrayContaining(['  name: a slash is not allowed', '  extensions[0]: no extension']));
  });

  test.each([
    [['env', 'creat', 'x'], 2],
    [['env', 'create'], 2],
    [['env', 'create', 'x', '--timeout', '0'], 2],
    [['env', 'credentials', 'x', '--tier', 'root'], 2],
    [['op', 'list', '--state', 'odd'], 2],
    [['--help'], 0],
    [['env', 'create', '--help'], 0],
  ])('%j exits with %d', async (args, code) => {
    expect(await run(...args)).toBe(code);
  });

  test('what is no gateway of ours is said, and is not taken for an answer', async () => {
    gateway.answer('GET /v1/projects?', { status: 200, text: '<html>hello</html>' });
    expect(await run('project', 'list')).toBe(5);
    expect(err[0]).toContain('not from a gateway of Surefoot');
  });

  test('letters that turn or hide text on a terminal are shown by their number', async () => {
    const name = 'pr\u202e1';
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ name }) });
    expect(await run('env', 'show', ENVIRONMENT_ID)).toBe(0);
    expect(out.join()).toContain('pr\\u{202e}1');
  });

  test('the outcome of a watched operation is the exit code', async () => {
    gateway.answer(`GET ${OPERATION}`, {
      body: operation('cancelled', { reason: { code: 'cancelled', message: 'on request' } }),
    });
    expect(await run('op', 'watch', OPERATION_ID)).toBe(1);
    gateway.answer(`GET ${OPERATION}`, { body: operation('succeeded') });
    expect(await run('op', 'watch', OPERATION_ID)).toBe(0);
  });
});

describe('services', () => {
  const API = { name: 'api', image: 'team/api:1' };
  const SECRET = 'canary-9c41';
  const shown = SERVICE;
  const asked = { ...API, ports: [3000], env: { MODE: 'x' }, secrets: { key: SECRET } };
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cli-'));
    file = join(folder, 'services.json');
    writeFileSync(file, JSON.stringify([asked]));
    gateway.answer(`POST ${COLLECTION}`, { status: 202, body: operation('queued') });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('come from a file, from standard input, and from options, which are added', async () => {
    expect(await run('env', 'create', 'a', '--services', file, '--service', 'web=team/web@sha256:1=2')).toBe(0);
    input = JSON.stringify([API]);
    expect(await run('env', 'create', 'a', '--services', '-')).toBe(0);
    expect(await run('env', 'create', 'a', '--service', 'api=team/api:1', '--service', 'web=w')).toBe(0);
    expect(await run('env', 'create', 'a')).toBe(0);
    expect(gateway.asked.map(({ body }) => body)).toEqual([
      { name: 'a', services: [asked, { name: 'web', image: 'team/web@sha256:1=2' }] },
      { name: 'a', services: [API] },
      { name: 'a', services: [API, { name: 'web', image: 'w' }] },
      { name: 'a' },
    ]);
  });

  test.each([
    ['is not JSON', SECRET],
    ['is cut off', `[{"secrets": {"key": "${SECRET}`],
    ['is no list', JSON.stringify({ services: [SECRET] })],
    ['is empty', ''],
  ])('a file that %s is a mistake in the command, and is not quoted', async (_what, text) => {
    writeFileSync(file, text);
    expect(await run('env', 'create', 'a', '--services', file)).toBe(2);
    expect(err.join()).toContain(file);
    expect(err.join()).not.toContain(SECRET);
    expect(calls()).toEqual([]);
  });

  test('where a file is not JSON is told by line and column, and an object around the list is explained', async () => {
    writeFileSync(file, `[\n  {"name": "api",\n   "secrets": {"key": "${SECRET}",}}\n]`);
    expect(await run('env', 'create', 'a', '--services', file)).toBe(2);
    expect(err[0]).toContain(`${file} is not JSON: look at line 3, column 37`);
    writeFileSync(file, JSON.stringify({ services: [API] }));
    expect(await run('env', 'create', 'a', '--services', file)).toBe(2);
    expect(err.join('\n')).toContain(`jq .services ${file} | surefoot env create … --services -`);
  });

  test('faults are told with the name of the service, and to programs with the path', async () => {
    const errors = [
      { field: 'services[1].ports[0]', code: 'too_big', message: 'a port is …' },
      { field: 'services[1]', code: 'x', message: 'whole' },
      { field: 'services[2].name', code: 'x', message: 'no name' },
    ];
    gateway.answer(`POST ${COLLECTION}`, { status: 400, body: problem('invalid_request', { errors }) });
    const services = [API, { name: 'web', image: 'w', ports: [99_999] }, { image: 'x' }];
    writeFileSync(file, JSON.stringify(services));
    for (const wait of [[], ['--wait']]) {
      err = [];
      expect(await run('env', 'create', 'a', '--services', file, ...wait)).toBe(2);
      expect(err).toEqual([
        'surefoot: the request is not valid [invalid_request]',
        '  service web, ports[0]: a port is …',
        '  service web: whole',
        '  services[2].name: no name',
      ]);
    }
    expect(await run('env', 'create', 'a', '--services', file, '--json')).toBe(2);
    expect(JSON.parse(err.at(-1) ?? '')).toMatchObject({ code: 'invalid_request', errors });
  });

  test('a file that is not there is named with the reason', async () => {
    expect(await run('env', 'create', 'a', '--services', join(folder, 'none'))).toBe(2);
    expect(err[0]).toContain(`${join(folder, 'none')} cannot be read: there is no such file`);
    expect(await run('env', 'create', 'a', '--services', folder)).toBe(2);
    expect(await run('env', 'create', 'a', '--service', 'web')).toBe(2);
  });

  test('while somebody waits, each effect names its service, and progress is shown until the next line', async () => {
    const at = '2026-01-01T00:00:00.000Z';
    const effects = [
      { kind: 'image', service: 'api', outcome: 'applied', startedAt: at, settledAt: '2026-01-01T00:00:07.000Z' },
    ] as const;
    const events = [
      operation('running', { effects: [], progress: 'pulling team/api:1: 1 of 80 MB' }),
      operation('running', {
        effects: [...effects, { kind: 'healthy', service: 'slow', outcome: 'pending', startedAt: at, settledAt: null }],
        progress: 'waits for port 80',
      }),
      operation('running', { effects }),
    ];
    gateway.answer(
      `GET ${OPERATION}`,
      { body: operation('running', { effects: [] }) },
      { body: operation('succeeded', { effects }) },
    );
    gateway.answer(`GET ${OPERATION}/events`, {
      text: events.map((event) => `event: operation\ndata: ${JSON.stringify(event)}\n\n`).join(''),
    });
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ services: [shown] }) });
    underWay();
    expect(await run('env', 'create', 'pr-1', '--services', file, '--wait')).toBe(0);
    expect(err).toEqual(['  image              applied    7000 ms  api']);
    expect(statuses).toContain('  … pulling team/api:1: 1 of 80 MB');
    expect(statuses).toContain('  … healthy  slow: waits for port 80');
    expect(statuses.at(-1)).toBe('');
    expect(out.join()).toContain('127.0.0.1:20001 -> 3000');
  });

  test('are shown with their states and addresses, and why the environment is degraded', async () => {
    const services = [
      shown,
      { ...shown, name: 'job', ports: [], state: 'exited', exitCode: 137, outOfMemory: true, restarts: 4 },
      { ...shown, name: 'new', state: 'pending', ports: [{ container: 80, address: '127.0.0.1', host: null }] },
    ];
    const reason = { code: 'service_exited', message: 'service job has ended' };
    gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ state: 'degraded', reason, services }) });
    expect(await run('env', 'show', ENVIRONMENT_ID)).toBe(0);
    const [text] = out;
    expect(text).toContain('service job has ended (service_exited)');
    expect(text?.split('\n').slice(-4)).toEqual([
      'SERVICE  STATE                                          ADDRESS                  IMAGE',
      'api      running                                        127.0.0.1:20001 -> 3000  team/api:1',
      'job      exited (code 137, out of memory, restarts: 4)  -                        team/api:1',
      'new      pending                                        … -> 80                  team/api:1',
    ]);
  });

  test('what each was asked for with is shown on request', async () => {
    const limits = { memory: 1536 * 1024 ** 2, cpus: 0.5, pids: 64 };
    const health = { http: { port: 80, path: '/up' }, deadlineSeconds: 9 };
    gateway.answer(`GET ${ENVIRONMENT}`, {
      body: environment({ services: [{ ...shown, limits, health, user: '7' }] }),
    });
    expect(await run('env', 'show', ENVIRONMENT_ID, '--verbose')).toBe(0);
    expect(out[0]?.split('\n').slice(-9)).toEqual([
      'service    api',
      'health     GET /up at port 80 answers, within 9 s',
      'memory     1536m',
      'cpus       0.5',
      'pids       64',
      'user       7',
      'readOnly   no',
      'variables  MODE',
      'secrets    key',
    ]);
  });

  describe('of an environment that is there', () => {
    beforeEach(() => {
      exists();
      underWay();
    });
    const found = (services: readonly Service[], more: Partial<Environment> = {}): void =>
      gateway.answer(`GET ${ENVIRONMENT}`, { body: environment({ services, ...more }) });

    test('B122: the same ones are no error, in whatever order, and neither is saying nothing of them', async () => {
      found([{ ...shown, name: 'web', image: 'w', ports: [], env: [], secrets: [] }, shown]);
      const same = ['env', 'create', 'pr-1', '--services', file, '--service', 'web=w', '--wait'];
      expect(await run(...same)).toBe(0);
      expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
    });

    test.each<[string, readonly Service[], string]>([
      ['none', [], 'service api: there is none'],
      ['another image', [{ ...shown, image: 'b' }], 'service api, image: it has "b", asked for is "team/api:1"'],
      ['other ports', [{ ...shown, ports: [] }], 'service api, ports: it has [], asked for is [3000]'],
      ['other variables', [{ ...shown, env: ['MODE', 'B'] }], 'names of variables: it has ["B","MODE"]'],
      ['other secrets', [{ ...shown, secrets: [] }], 'names of secrets: it has [], asked for is ["key"]'],
      ['another user', [{ ...shown, user: '7' }], 'user: it has "7", asked for is null'],
      ['more memory', [{ ...shown, limits: { ...shown.limits, memory: 1 } }], 'limits.memory: it has 1, asked for is'],
      ['a check', [{ ...shown, health: { tcp: { port: 80 }, deadlineSeconds: 60 } }], 'health.tcp: it has 80, asked'],
      [
        'a deadline',
        [{ ...shown, health: { deadlineSeconds: 9 } }],
        'health.deadlineSeconds: it has 9, asked for is 60',
      ],
      ['one more', [shown, { ...shown, name: 'web' }], '(service web: it is not asked for)'],
    ])('%s is a conflict that is told without a secret', async (_what, services, text) => {
      found(services);
      expect(await run('env', 'create', 'pr-1', '--services', file, '--wait')).toBe(3);
      expect(err.join()).toContain('exists with other settings (');
      expect(err.join()).toContain(text);
      expect(err.at(-1)).toContain('a service cannot be changed: delete the environment and create it');
      expect(err.join()).not.toContain(SECRET);
    });

    test('B122: limits and checks are compared as they were meant, however they were written', async () => {
      const limits = { memory: '1G', cpus: 0.5 };
      const health = { http: { path: '/', port: 3000 }, deadlineSeconds: 30 };
      writeFileSync(file, JSON.stringify([{ ...asked, limits, health }]));
      found([{ ...shown, limits: { memory: 1024 ** 3, cpus: 0.5, pids: 256 }, health }]);
      expect(await run('env', 'create', 'pr-1', '--services', file, '--wait')).toBe(0);
      expect(err.join('\n')).toContain('not compared: commands, values of variables and secrets');
    });

    test.each<[string, Partial<Environment>]>([
      ['is being started again', { state: 'updating' }],
      [
        'has a service that was started again',
        { state: 'degraded', reason: { code: 'service_restarted', message: 'service api was started again' } },
      ],
    ])('one that %s is waited for', async (_what, now) => {
      const answers = [now, now, now, {}].map((more) => ({ body: environment({ services: [shown], ...more }) }));
      gateway.answer(`GET ${ENVIRONMENT}`, ...answers);
      expect(await run('env', 'create', 'pr-1', '--wait')).toBe(0);
      found([shown], now);
      expect(await run('env', 'create', 'pr-1', '--wait', '--timeout', '1')).toBe(6);
      expect(err.at(-2)).toContain(`after 1 s environment pr-1 is ${now.state}`);
    });

    test('one that is degraded is not ready, and the reason is told', async () => {
      found([shown], { state: 'degraded', reason: { code: 'service_exited', message: 'service api has ended' } });
      expect(await run('env', 'create', 'pr-1', '--wait')).toBe(1);
      expect(err.join()).toContain('environment pr-1 is degraded: service api has ended (service_exited)');
    });
  });
});

describe('registries', () => {
  const SERVER = 'registry.example.com:5000';
  const registry = { server: SERVER, username: 'puller', createdAt: '2026-01-01T00:00:00.000Z' };

  test('a password comes from standard input or a file, without its line end, and is told nowhere', async () => {
    gateway.answer('POST /v1/admin/registries', { status: 201, body: registry });
    input = 'canary-1\n';
    expect(await run('registry', 'add', SERVER, '--username', 'puller', '--password-file', '-')).toBe(0);
    const folder = mkdtempSync(join(tmpdir(), 'cli-'));
    writeFileSync(join(folder, 'password'), ' canary-2 \r\n');
    expect(
      await run('registry', 'add', SERVER, '--username', 'puller', '--password-file', join(folder, 'password')),
    ).toBe(0);
    rmSync(folder, { recursive: true });
    expect(gateway.asked.map(({ body }) => body)).toEqual([
      { server: SERVER, username: 'puller', password: 'canary-1' },
      { server: SERVER, username: 'puller', password: ' canary-2 ' },
    ]);
    expect([...out, ...err].join()).not.toContain('canary');
  });

  test('without a password, and without saying where it is, nothing is asked', async () => {
    input = '\n';
    expect(await run('registry', 'add', SERVER, '--username', 'puller', '--password-file', '-')).toBe(2);
    expect(await run('registry', 'add', SERVER, '--username', 'puller')).toBe(2);
    expect(calls()).toEqual([]);
  });

  test('they are listed and removed', async () => {
    gateway.answer('GET /v1/admin/registries?', { body: { items: [registry], nextCursor: null } });
    expect(await run('registry', 'list')).toBe(0);
    expect(out.join()).toContain('puller');
    gateway.answer(`DELETE /v1/admin/registries/${encodeURIComponent(SERVER)}`, { body: registry });
    expect(await run('registry', 'remove', SERVER)).toBe(0);
    expect(await run('registry', 'remove', 'nowhere')).toBe(3);
  });
});
