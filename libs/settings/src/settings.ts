/** What a process of this installation is told, read from `local.env` once, at its start. */
import { isUuid } from '#kernel';
import { homePaths, type HomePaths } from './home-paths.ts';
import { InvalidSettings, parseLocalEnv } from './local-env.ts';
import { checkPrivateFolder, readPrivateFile } from './private-file.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Settings {
  /** The state folder, absolute. */
  readonly home: string;
  readonly paths: HomePaths;
  /** UUID of the installation. */
  readonly installation: string;
  readonly hostId: string;
  /** Where the gateway listens, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly catalogUrl: string;
  readonly brokerUrl: string;
  /** As DOCKER_HOST: `unix:///…`. */
  readonly dockerHost: string;
  readonly engineImage: string;
  /** The loopback port of the first engine. */
  readonly enginePort: number;
  /** Addresses that the networks of engines and services are cut from. */
  readonly networkPool: string;
  /** Where services may have ports of this host; undefined where none may, since the host is not closed to them. */
  readonly servicePorts: PortRange | undefined;
  /** The address of this host that published ports are on. */
  readonly serviceAddress: string;
  /** How many networks of services this host takes. */
  readonly serviceNetworksMax: number;
  readonly logLevel: LogLevel;
}

/** Both ends belong to it. */
interface PortRange {
  readonly from: number;
  readonly to: number;
}

const NETWORK_POOL_DEFAULT = '10.213.0.0/16';
/**
 * Measured by `npm run bench -- --services` (docs/BENCH.md): the engine joins all of them again when it starts, one call to
 * the daemon that is given up after 60 s. It took 3 s with 100, 20 s with 200 and 100 s with 400.
 */
const SERVICE_NETWORKS_MAX_DEFAULT = '200';

/**
 * @param home SUREFOOT_HOME, an absolute path
 * @throws UnsafeState, InvalidSettings
 */
export function loadSettings(home: string): Settings {
  const paths = homePaths(home);
  if (!home.startsWith('/')) throw new InvalidSettings(home, ['SUREFOOT_HOME is an absolute path']);
  checkPrivateFolder(home);
  return readSettings(paths, parseLocalEnv(paths.localEnv, readPrivateFile(paths.localEnv)));
}

/** The state folder that this process was given. @throws InvalidSettings */
export function homeFromEnvironment(env: NodeJS.ProcessEnv): string {
  const home = env['SUREFOOT_HOME'];
  if (home === undefined || home === '') throw new InvalidSettings('the environment', ['SUREFOOT_HOME is not set']);
  return home;
}

function readSettings(paths: HomePaths, values: ReadonlyMap<string, string>): Settings {
  const faults: string[] = [];
  const read = (name: string, rule: string, fits: (value: string) => boolean, preset?: string): string => {
    const value = values.get(name);
    if (value === undefined || value === '') {
      if (preset === undefined) faults.push(`${name} is missing`);
      return preset ?? '';
    }
    if (!fits(value)) faults.push(`${name} is not ${rule}`);
    return value;
  };
  const apiKey = values.get('SUREFOOT_API_KEY');
  const settings: Settings = {
    home: paths.home,
    paths,
    installation: read('SUREFOOT_INSTALLATION', 'a UUID in lower case', isUuid),
    hostId: read('SUREFOOT_HOST', 'a name of letters, digits and hyphens', isHostId, 'local'),
    url: read('SUREFOOT_URL', 'an http address', hasScheme('http:', 'https:')).replace(/\/+$/, ''),
    apiKey: apiKey === '' ? undefined : apiKey,
    catalogUrl: read('SUREFOOT_CATALOG_URL', 'a postgres address', hasScheme('postgres:', 'postgresql:')),
    brokerUrl: read('SUREFOOT_BROKER_URL', 'an amqp address', hasScheme('amqp:', 'amqps:')),
    dockerHost: read('DOCKER_HOST', 'a Docker address', hasScheme('unix:', 'tcp:')),
    engineImage: read('SUREFOOT_ENGINE_IMAGE', 'an image name', (value) => /^[\w./:@-]+$/.test(value)),
    enginePort: Number(read('SUREFOOT_ENGINE_PORT', 'a port', isPort)),
    networkPool: read('SUREFOOT_NETWORK_POOL', 'an IPv4 network such as 10.213.0.0/16', isPool, NETWORK_POOL_DEFAULT),
    servicePorts: portRange(read('SUREFOOT_SERVICE_PORTS', 'a range of ports such as 20000-29999', isPortRange, '')),
    serviceAddress: read('SUREFOOT_SERVICE_ADDRESS', 'an IPv4 address', isAddress, '127.0.0.1'),
    serviceNetworksMax: Number(
      read('SUREFOOT_SERVICE_NETWORKS_MAX', 'a whole number up to 9999', isCount, SERVICE_NETWORKS_MAX_DEFAULT),
    ),
    logLevel: read('SUREFOOT_LOG_LEVEL', `one of ${LOG_LEVELS.join(', ')}`, isLogLevel, 'info') as LogLevel,
  };
  if (faults.length > 0) throw new InvalidSettings(paths.localEnv, faults);
  return settings;
}

function hasScheme(...schemes: readonly string[]): (value: string) => boolean {
  return (value) => URL.canParse(value) && schemes.includes(new URL(value).protocol);
}

/** Part of queue and lock names. */
function isHostId(value: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/.test(value);
}

function isPort(value: string): boolean {
  return /^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65_535;
}

function isPortRange(value: string): boolean {
  const [from = '', to = '', ...more] = value.split('-');
  return more.length === 0 && isPort(from) && isPort(to) && Number(from) <= Number(to);
}

function portRange(value: string): PortRange | undefined {
  if (!isPortRange(value)) return undefined;
  const [from, to] = value.split('-');
  return { from: Number(from), to: Number(to) };
}

function isCount(value: string): boolean {
  return /^(0|[1-9]\d{0,3})$/.test(value);
}

function isAddress(value: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(value) && value.split('.').every((octet) => Number(octet) <= 255);
}

function isPool(value: string): boolean {
  const found = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(value);
  if (found === null) return false;
  const [, ...numbers] = found.map(Number);
  const length = numbers.pop() ?? 0;
  return numbers.every((octet) => octet <= 255) && length >= 8 && length <= 28;
}

function isLogLevel(value: string): boolean {
  return LOG_LEVELS.some((level) => level === value);
}
