import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { enginePlace, homeFromEnvironment, InvalidSettings, loadSettings, socketFolder, UnsafeState } from './index.ts';

const INSTALLATION = '0b9d2f3e-5b77-4c0e-9a55-0f6c1d2e3f40';
const ENGINE = '7c1f7a52-7d0e-4d4c-8b7e-5a2b9f0c6d11';
const COMPLETE = {
  SUREFOOT_URL: 'http://127.0.0.1:18080/',
  SUREFOOT_API_KEY: 'sfk_secret',
  SUREFOOT_INSTALLATION: INSTALLATION,
  SUREFOOT_CATALOG_URL: 'postgres://surefoot:pw@127.0.0.1:15432/surefoot',
  SUREFOOT_BROKER_URL: 'amqp://surefoot:pw@127.0.0.1:15672/%2F',
  DOCKER_HOST: 'unix:///run/docker.sock',
  SUREFOOT_ENGINE_IMAGE: 'postgres:17',
  SUREFOOT_ENGINE_PORT: '15433',
};

let home = '';

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'settings-'));
});

afterEach(() => rmSync(home, { recursive: true }));

function writeEnv(values: Record<string, string>, mode = 0o600): string {
  const path = join(home, 'local.env');
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  writeFileSync(path, `# made for a test\n\n${lines.join('\n')}\n`);
  chmodSync(path, mode);
  return path;
}

describe('local.env', () => {
  test('a complete file gives typed settings, with defaults for what may be left out', () => {
    writeEnv({ ...COMPLETE, SOMETHING_ELSE: 'kept' });
    const settings = loadSettings(home);
    expect(settings).toMatchObject({
      home,
      installation: INSTALLATION,
      hostId: 'local',
      url: 'http://127.0.0.1:18080',
      apiKey: 'sfk_secret',
      enginePort: 15433,
      networkPool: '10.213.0.0/16',
      servicePorts: undefined,
      serviceAddress: '127.0.0.1',
      serviceNetworksMax: 200,
      logLevel: 'info',
    });
    expect(settings.paths.receipts).toBe(join(home, 'host', 'receipts'));
  });

  test('every fault is named at once, and no value is repeated', () => {
    writeEnv({ ...COMPLETE, SUREFOOT_BROKER_URL: 'hunter2', SUREFOOT_ENGINE_PORT: '70000', SUREFOOT_URL: '' });
    expect(() => loadSettings(home)).toThrow(InvalidSettings);
    expect(() => loadSettings(home)).toThrow(
      /SUREFOOT_URL is missing; SUREFOOT_BROKER_URL is not an amqp address; SUREFOOT_ENGINE_PORT is not a port/,
    );
    expect(() => loadSettings(home)).not.toThrow(/hunter2/);
  });

  test('what is said about services is read', () => {
    writeEnv({
      ...COMPLETE,
      SUREFOOT_SERVICE_PORTS: '20000-29999',
      SUREFOOT_SERVICE_ADDRESS: '0.0.0.0',
      SUREFOOT_SERVICE_NETWORKS_MAX: '12',
    });
    expect(loadSettings(home)).toMatchObject({
      servicePorts: { from: 20_000, to: 29_999 },
      serviceAddress: '0.0.0.0',
      serviceNetworksMax: 12,
    });
  });

  test.each([
    ['SUREFOOT_SERVICE_PORTS', ['20000', '30000-20000', '0-10', '1-70000', '1-2-3', '20000-', '2e4-3e4']],
    ['SUREFOOT_SERVICE_ADDRESS', ['localhost', '256.0.0.1', '10.0.0', '10.0.0.0/8', '::1']],
    ['SUREFOOT_SERVICE_NETWORKS_MAX', ['-1', '1.5', 'many', '10000', '010']],
  ])('%s that cannot be meant is refused: %j', (name, values) => {
    for (const value of values) {
      writeEnv({ ...COMPLETE, [name]: value });
      expect(() => loadSettings(home)).toThrow(new RegExp(`${name} is not a`));
    }
  });

  test('ports of services may be taken away by an empty line', () => {
    writeEnv({ ...COMPLETE, SUREFOOT_SERVICE_PORTS: '' });
    expect(loadSettings(home).servicePorts).toBeUndefined();
  });

  test.each([
    ['no assignment', 'hunter2'],
    ['a shell expansion', 'SUREFOOT_URL=$(hunter2)'],
    ['an export', 'export SUREFOOT_URL=hunter2'],
    ['a name given twice', 'A=1\nA=hunter2'],
  ])('a line with %s is refused by its number', (_what, line) => {
    const path = writeEnv(COMPLETE);
    writeFileSync(path, `${line}\n`);
    expect(() => loadSettings(home)).toThrow(/line [12] /);
    expect(() => loadSettings(home)).not.toThrow(/hunter2/);
  });

  test.each([0o640, 0o604, 0o620])('a file of mode %o is refused', (mode) => {
    writeEnv(COMPLETE, mode);
    expect(() => loadSettings(home)).toThrow(UnsafeState);
  });

  test('a symbolic link in its place is refused, even to a safe file', () => {
    renameSync(writeEnv(COMPLETE), join(home, 'real.env'));
    symlinkSync(join(home, 'real.env'), join(home, 'local.env'));
    expect(() => loadSettings(home)).toThrow(/symbolic link/);
  });

  test('a missing file, a folder open to others and a folder behind a link are refused', () => {
    expect(() => loadSettings(home)).toThrow(/is missing.*npm start/);
    writeEnv(COMPLETE);
    const link = join(home, 'link');
    const folder = join(home, 'folder');
    mkdirSync(folder, { mode: 0o700 });
    symlinkSync(folder, link);
    expect(() => loadSettings(link)).toThrow(/symbolic link/);
    chmodSync(home, 0o750);
    expect(() => loadSettings(home)).toThrow(/open to other users/);
  });

  test('a state folder that is not named, or not absolute, is refused', () => {
    expect(() => homeFromEnvironment({})).toThrow(/SUREFOOT_HOME is not set/);
    expect(() => loadSettings('.surefoot')).toThrow(/absolute/);
  });
});

describe('engine place', () => {
  test('everything of an engine is in its own folder', () => {
    writeEnv(COMPLETE);
    const place = enginePlace(loadSettings(home), { id: ENGINE, name: 'main', port: 15433, identity: INSTALLATION });
    const folder = join(home, 'host', 'engines', ENGINE);
    expect(place).toEqual({
      engineId: ENGINE,
      name: 'main',
      folder,
      confFolder: join(folder, 'conf'),
      socketFolder: join(folder, 'socket'),
      adminPasswordFile: join(folder, 'admin-password'),
      caFile: join(home, 'host', 'ca', 'ca.pem'),
      caKeyFile: join(home, 'host', 'ca', 'ca.key'),
      port: 15433,
      identity: INSTALLATION,
    });
  });

  test('a socket whose path would not fit 107 bytes gets a short folder of its own', () => {
    const engines = (length: number): { paths: never; installation: string } => ({
      paths: { engines: `/${'h'.repeat(length - 1)}` } as never,
      installation: INSTALLATION,
    });
    // engines + / + 36 of the id + /socket + /.s.PGSQL.5432
    const most = 107 - 1 - 36 - 7 - 14;
    expect(socketFolder(engines(most), ENGINE, '/short')).toBe(`/${'h'.repeat(most - 1)}/${ENGINE}/socket`);
    expect(socketFolder(engines(most + 1), ENGINE, '/short')).toBe('/short/0b9d2f3e/7c1f7a52');
    expect(() => socketFolder(engines(most + 1), ENGINE, `/${'b'.repeat(90)}`)).toThrow(/shorter SUREFOOT_HOME/);
  });
});
