import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Receipt } from '#protocol';
import { RecordFolders } from '#receipts';
import { homePaths, type Settings } from '#settings';
import { type ScriptedAnswer, ScriptedGateway } from '#testing';
import { gatewayFrom } from '../connection.ts';
import { RestClient } from '../rest-client.ts';
import { finding, type Finding } from './finding.ts';
import { checkFirewall } from './firewall.ts';
import { checkCases, checkEngines, checkEnvironments } from './gateway.ts';
import { checkDisk, checkFiles, checkLock, checkPasses, checkProcesses, checkReceipts } from './host.ts';
import { checkBroker, checkCatalog, checkDocker } from './servers.ts';

describe('servers', () => {
  let server: Server;

  /** @param speak what it does with a connection */
  async function serve(speak: (socket: Socket) => void): Promise<string> {
    server = createServer((socket) => {
      socket.on('error', () => undefined).resume();
      speak(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve));
  });

  function inPieces(socket: Socket): void {
    for (const byte of [1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 10]) socket.write(Buffer.of(byte));
  }

  test.each([
    ['postgres', (socket: Socket) => socket.write('S'), 'ok'],
    ['something else', (socket: Socket) => socket.write('HTTP/1.1 400'), 'failed'],
    ['a door that is closed at once', (socket: Socket) => socket.end(), 'failed'],
    ['silence', () => undefined, 'failed'],
  ])('as a catalog, %s', async (_what, speak, status) => {
    const at = await serve(speak);
    const found = await finding('catalog', () => checkCatalog(`postgres://user:hunter2@${at}/surefoot`));
    expect(found.status).toBe(status);
    expect(found.detail).not.toContain('hunter2');
  });

  test.each([
    ['a broker, in pieces', inPieces, 'ok'],
    ['a broker of another version', (socket: Socket) => socket.end('AMQP\0\x01\0\0 more'), 'failed'],
    ['postgres', (socket: Socket) => socket.end('E'), 'failed'],
  ])('as a broker, %s', async (_what, speak, status) => {
    const at = await serve(speak);
    const found = await finding('broker', () => checkBroker(`amqp://user:hunter2@${at}`));
    expect(found).toMatchObject({ status, detail: expect.not.stringContaining('hunter2') });
  });

  test('as a daemon, what answers its version; a socket that is not there is said', async () => {
    const body = '{"Version":"20.10.24"}';
    const at = await serve((socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    expect(await finding('docker', () => checkDocker(`tcp://${at}`))).toMatchObject({ status: 'ok' });
    expect(await finding('docker', () => checkDocker('unix:///nowhere.sock'))).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('ENOENT'),
    });
  });
});

/** @returns its file */
function publishReceipt({ paths, installation }: Settings): string {
  const receipt: Receipt = {
    version: 1,
    installation,
    host: 'local',
    jobId: randomUUID(),
    operationId: randomUUID(),
    claimId: randomUUID(),
    attempt: 1,
    claimNumber: 1,
    effectId: randomUUID(),
    kind: 'roles',
    resource: 'engine main / environment pr-1',
    token: randomUUID(),
    createdAt: '2026-01-01T00:00:00.000Z',
  };
  new RecordFolders(paths).publishReceipt(receipt);
  return join(paths.receipts, `${receipt.effectId}.json`);
}

/** A record with other contents whose length and checksum fit. */
function sealed(text: string, changes: object): string {
  const record = { ...(JSON.parse(text) as { readonly record: object }).record, ...changes };
  const changed = JSON.stringify(record);
  const sha256 = createHash('sha256').update(changed).digest('hex');
  return JSON.stringify({ record, length: Buffer.byteLength(changed), sha256 });
}

describe('what the gateway shows', () => {
  let gateway: ScriptedGateway;
  let client: RestClient;

  beforeEach(async () => {
    gateway = await ScriptedGateway.start();
    client = new RestClient(gatewayFrom(gateway.env));
  });

  afterEach(() => gateway.close());

  test.each([
    [[{ name: 'main', state: 'ready' }], 'ok', 'main is ready'],
    [[{ name: 'main', state: 'creating', waitingFor: 'its server' }], 'warning', 'main is creating'],
    [[{ name: 'main', state: 'blocked' }], 'warning', 'main is blocked'],
    [
      [
        { name: 'one', state: 'ready' },
        { name: 'main', state: 'ready', waitingFor: 'engine main is not the one that was pinned: imageDigest' },
      ],
      'failed',
      'main takes no work: engine main is not the one that was pinned: imageDigest',
    ],
    [[{ name: 'main', state: 'failed' }], 'failed', 'there is none: run npm start, which asks for one'],
  ])('engines %j are %s', async (items, status, detail) => {
    gateway.answer('GET /v1/admin/engines?', { body: { items, nextCursor: null } });
    expect(await checkEngines(client)).toEqual({ check: 'engines', status, detail });
  });

  test.each([
    [[], 'ok', 'none is open'],
    [[{ operationId: 'o1', reason: { message: 'who knows' } }], 'warning', '1 open, the newest: who knows'],
    [
      [
        { operationId: 'o1', reason: { message: 'who knows' } },
        { operationId: null, reason: { message: 'host local went back in time' } },
      ],
      'failed',
      'no work is taken: host local went back in time',
    ],
  ])('cases %j are %s', async (items, status, detail) => {
    gateway.answer('GET /v1/admin/cases?state=open', { body: { items, nextCursor: null } });
    expect(await checkCases(client)).toMatchObject({ status, detail: expect.stringContaining(detail) });
  });

  test('environments that do not hold are named with their reasons, of every project', async () => {
    const page = (...items: readonly object[]): ScriptedAnswer => ({ body: { items, nextCursor: null } });
    gateway.answer('GET /v1/projects?', page({ name: 'default' }, { name: 'team' }));
    for (const project of ['default', 'team'])
      for (const state of ['blocked', 'degraded'])
        gateway.answer(`GET /v1/projects/${project}/environments?state=${state}`, page());
    expect(await checkEnvironments(client)).toMatchObject({ status: 'ok' });
    const reason = { code: 'service_exited', message: 'service api has ended' };
    const degraded = Array.from({ length: 6 }, (_, n) => ({ name: `e${n}`, id: `id${n}`, state: 'degraded', reason }));
    gateway.answer('GET /v1/projects/team/environments?state=degraded', page(...degraded));
    gateway.answer(
      'GET /v1/projects/default/environments?state=blocked',
      page({ name: 'b', id: 'i', state: 'blocked', reason: null }),
    );
    const { status, detail } = await checkEnvironments(client);
    expect(status).toBe('warning');
    expect(detail).toContain('b (i) is blocked; e0 (id0) is degraded: service api has ended (service_exited); e1');
    expect(detail).toMatch(/; 2 more; see: surefoot env show$/);
  });
});

describe('host', () => {
  let settings: Settings;

  beforeEach(() => {
    const home = mkdtempSync(join(tmpdir(), 'doctor-'));
    const paths = homePaths(home);
    for (const folder of [
      paths.run,
      paths.log,
      paths.host,
      paths.receipts,
      paths.witnesses,
      paths.fences,
      paths.engines,
    ])
      mkdirSync(folder, { mode: 0o700 });
    settings = { home, paths, installation: '0b9d2f3e-5b77-4c0e-9a55-0f6c1d2e3f40', hostId: 'local' } as Settings;
  });

  afterEach(() => rmSync(settings.home, { recursive: true }));

  test('every file that is missing or open to others is named', () => {
    chmodSync(settings.paths.receipts, 0o755);
    const { status, detail } = checkFiles(settings);
    expect(status).toBe('failed');
    for (const path of [settings.paths.receipts, settings.paths.key, settings.paths.caKeyFile, settings.paths.epoch])
      expect(detail).toContain(path);
  });

  test('a number that is used by another program is not our process', () => {
    for (const name of ['gateway', 'worker', 'reconciler'])
      writeFileSync(join(settings.paths.run, `${name}.pid`), `${process.pid}\n`);
    expect(checkProcesses(settings)).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('gateway, worker, reconciler not running'),
    });
  });

  test.each([
    [0, 'done', 'ok'],
    [0, 'failed', 'warning'],
    [60_000, 'done', 'failed'],
  ])('B107: a pass that ended %d ms ago as %s is %s', (agoMs, outcome, status) => {
    const endedAt = new Date(Date.now() - agoMs).toISOString();
    const content = { pid: 1, passes: [{ pass: 'relay', endedAt, outcome }] };
    writeFileSync(join(settings.paths.run, 'reconciler.passes'), JSON.stringify(content));
    expect(checkPasses(settings).status).toBe(status);
  });

  test('a lock that nobody holds is a failure', () => {
    const lock = join(settings.home, 'surefoot', `${settings.installation}.local.lock`);
    mkdirSync(join(settings.home, 'surefoot'));
    writeFileSync(lock, '');
    expect(checkLock(settings, { XDG_RUNTIME_DIR: settings.home }).status).toBe('failed');
  });

  test('open receipts are counted, and old ones stand out', () => {
    expect(checkReceipts(settings)).toMatchObject({ status: 'ok', detail: 'none is open' });
    const receipt = publishReceipt(settings);
    expect(checkReceipts(settings)).toMatchObject({ status: 'ok', detail: expect.stringContaining('1 open') });
    utimesSync(receipt, 0, 0);
    expect(checkReceipts(settings).status).toBe('warning');
  });

  test.each([
    ['torn', (text: string) => text.slice(0, 40)],
    ['empty', () => ''],
    ['changed', (text: string) => text.replace('"attempt":1', '"attempt":2')],
    ['of an unknown effect', (text: string) => sealed(text, { kind: 'paint' })],
  ])('a receipt that is %s fails, and its file is named', (_what, spoil) => {
    const path = publishReceipt(settings);
    writeFileSync(path, spoil(readFileSync(path, 'utf8')));
    expect(checkReceipts(settings)).toMatchObject({ status: 'failed', detail: expect.stringContaining(path) });
  });

  test('what is no receipt fails as well: the worker would not start beside it', () => {
    const path = join(settings.paths.receipts, 'notes.txt');
    writeFileSync(path, 'hello');
    expect(checkReceipts(settings)).toMatchObject({ status: 'failed', detail: expect.stringContaining(path) });
  });

  test('without a reconciler that is what is said of its passes', () => {
    expect(checkPasses(settings)).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(/^none has run: the reconciler is not running/),
    });
  });

  describe('firewall', () => {
    const named = (chain: string): string =>
      `-A ${chain} -s 10.71.96.0/19 -m comment --comment surefoot-0b9d2f3e-5b77-4c0e-9a55-0f6c1d2e3f40 -j DROP`;
    const COMPLETE = { filter: `${named('INPUT')}\n${named('DOCKER-USER')}\n`, mangle: named('POSTROUTING') };

    const look = (tables: Partial<typeof COMPLETE>): Promise<Finding> =>
      checkFirewall({ ...settings, servicePorts: { from: 20_000, to: 29_999 } }, async (table) => tables[table]);

    test('with all its rules it is well', async () => {
      expect(await look(COMPLETE)).toMatchObject({ status: 'ok' });
    });

    test.each([
      [{ ...COMPLETE, filter: named('INPUT') }, 'filter DOCKER-USER;'],
      [{ ...COMPLETE, mangle: '' }, 'mangle POSTROUTING;'],
      [{ ...COMPLETE, filter: COMPLETE.filter.replaceAll('0b9d', '1b9d') }, 'filter INPUT, filter DOCKER-USER;'],
    ])('a rule that is missing or another installation’s is a failure: %j', async (tables, places) => {
      expect(await look(tables)).toMatchObject({
        status: 'failed',
        detail: expect.stringMatching(new RegExp(`${places}.*npm start`)),
      });
    });

    test('that only root may see is a warning, and none is needed where services get no ports', async () => {
      expect(await look({})).toMatchObject({ status: 'warning' });
      expect(await checkFirewall(settings, async () => '')).toMatchObject({ status: 'ok' });
    });
  });

  test('free space is told', () => {
    expect(checkDisk(settings).detail).toMatch(/^\d+\.\d GiB free/);
  });
});
