/** Services: containers that run beside an environment's database (DESIGN §5, 6). What is asked for, without secrets. */

/** How a service is found to be well. Its image's own check counts when neither is given; with none, that it keeps running. */
export interface HealthCheck {
  /** GET of a path on a port of the container; a status from 200 to 399 is well. */
  readonly http?: { readonly port: number; readonly path: string };
  /** A port of the container that takes connections. */
  readonly tcp?: { readonly port: number };
  /** Seconds from its start until it has to be well. */
  readonly deadlineSeconds: number;
}

export interface ServiceLimits {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly pids: number;
}

export interface ServiceSpec {
  readonly command: readonly string[];
  /** Seen by everybody who can inspect the container; secrets come as files. */
  readonly env: Readonly<Record<string, string>>;
  /** Ports of the container that get a port of the host. */
  readonly ports: readonly number[];
  readonly health: HealthCheck;
  readonly limits: ServiceLimits;
  readonly readOnly: boolean;
  /** `user[:group]`, names or numbers; the image's where it is left out. */
  readonly user?: string;
}

export interface Service extends ServiceSpec {
  readonly id: string;
  /** A DNS label; other services of the environment find it under this name. */
  readonly name: string;
  readonly image: string;
  /** Names of the files that hold its secrets, besides `SERVICE_FILES`. */
  readonly secretNames: readonly string[];
}

/** Where services of a host may be published. */
export interface ServicePlace {
  readonly address: string;
  readonly ports: { readonly from: number; readonly to: number };
  /** Given to services of this host that are not gone. */
  readonly taken: readonly number[];
}

/** Of one service, as settled: the only thing its removal goes by. */
export interface ServiceIdentities {
  readonly containerId: string;
  readonly imageId: string;
  /** Port of the container → port of the host. */
  readonly ports: Readonly<Record<string, number>>;
}

/** The folder that a service finds its files in. */
export const SERVICE_FOLDER = '/run/surefoot';
export const DATABASE_URL_FILE = 'database_url';
export const CA_FILE = 'ca.pem';
/** Names that no secret can have. */
export const SERVICE_FILES: readonly string[] = [DATABASE_URL_FILE, CA_FILE];

/** What an environment's network calls its engine; no service can be called so. */
export const ENGINE_ALIAS = 'db';
/** Where the engine listens there. */
export const ENGINE_PORT = 5432;

/** Network profile whose addresses are the pool that environments' networks are cut from. */
export const SERVICES_PROFILE = 'private';

/** Addresses of an environment's network; see `subnetLength`. The engine, the gateway and the two ends take four. */
export const SERVICES_MAX = 10;

const DOCKER_HUB = 'docker.io';
/** What references call it besides: credentials for it are kept under its one name. */
const DOCKER_HUB_ALIASES: readonly string[] = ['index.docker.io', 'registry-1.docker.io'];

/** The registry that an image comes from, as its reference names it; one that names none is Docker's own. */
export function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const named = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return !named || DOCKER_HUB_ALIASES.includes(first) ? DOCKER_HUB : first;
}
