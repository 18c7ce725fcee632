import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { homePaths, type Settings } from '#settings';
import { finding } from './finding.ts';
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
    const receipt = join(settings.paths.receipts, 'a.json');
    writeFileSync(receipt, '{}');
    expect(checkReceipts(settings)).toMatchObject({ status: 'ok', detail: expect.stringContaining('1 open') });
    utimesSync(receipt, 0, 0);
    expect(checkReceipts(settings).status).toBe('warning');
  });

  test('free space is told', () => {
    expect(checkDisk(settings).detail).toMatch(/^\d+\.\d GiB free/);
  });
});
