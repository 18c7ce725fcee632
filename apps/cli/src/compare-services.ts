/**
 * Services that are there, and services that are asked for. What is shown of one can be compared; values of variables and
 * secrets are shown nowhere, and neither is its command, where people write passwords.
 */
import { SERVICE_DEFAULTS } from '#kernel';
import type { Service } from './api.ts';

export const NOT_COMPARED = 'not compared: commands, values of variables and secrets';
export const UNCHANGEABLE = 'a service cannot be changed: delete the environment and create it';

/** The gateway has judged it before it said that the name is taken, so it is what a service is asked for with. */
interface AskedService {
  readonly name: string;
  readonly image: string;
  readonly ports?: readonly number[];
  readonly env?: object;
  readonly secrets?: object;
  readonly health?: Partial<Service['health']>;
  readonly limits?: { readonly memory?: number | string; readonly cpus?: number; readonly pids?: number };
  readonly readOnly?: boolean;
  readonly user?: string;
}

type Compared = ReadonlyMap<string, string>;

/** @returns a text for each difference, without values that are secret */
export function serviceDifferences(found: readonly Service[], wanted: readonly unknown[]): readonly string[] {
  const has = new Map(found.map((service) => [service.name, comparedOf(service)]));
  const asked = new Map((wanted as readonly AskedService[]).map((service) => [service.name, comparedOfAsked(service)]));
  const more = [...has.keys()].filter((name) => !asked.has(name)).map((name) => `service ${name}: it is not asked for`);
  return [...[...asked].flatMap(([name, fields]) => differences(name, has.get(name), fields)), ...more];
}

function differences(name: string, has: Compared | undefined, asked: Compared): readonly string[] {
  if (has === undefined) return [`service ${name}: there is none`];
  return [...asked]
    .filter(([field, value]) => has.get(field) !== value)
    .map(([field, value]) => `service ${name}, ${field}: it has ${has.get(field) ?? ''}, asked for is ${value}`);
}

function comparedOf({ image, ports, env, secrets, health, limits, readOnly, user }: Service): Compared {
  return texts({
    image,
    ports: ports.map(({ container }) => container).sort((a, b) => a - b),
    'names of variables': [...env].sort(),
    'names of secrets': [...secrets].sort(),
    'health.http': health.http === undefined ? null : [health.http.port, health.http.path],
    'health.tcp': health.tcp?.port ?? null,
    'health.deadlineSeconds': health.deadlineSeconds,
    'limits.memory': limits.memory,
    'limits.cpus': limits.cpus,
    'limits.pids': limits.pids,
    readOnly,
    user,
  });
}

/** What is left out of a service is asked for as its default. */
function comparedOfAsked(asked: AskedService): Compared {
  const {
    memory = SERVICE_DEFAULTS.memoryBytes,
    cpus = SERVICE_DEFAULTS.cpus,
    pids = SERVICE_DEFAULTS.pids,
  } = asked.limits ?? {};
  return comparedOf({
    name: asked.name,
    image: asked.image,
    state: '',
    ports: (asked.ports ?? []).map((container) => ({ container, address: '', host: null })),
    env: Object.keys(asked.env ?? {}),
    secrets: Object.keys(asked.secrets ?? {}),
    health: { deadlineSeconds: SERVICE_DEFAULTS.deadlineSeconds, ...asked.health },
    limits: { memory: typeof memory === 'number' ? memory : bytesOf(memory), cpus, pids },
    readOnly: asked.readOnly ?? false,
    user: asked.user ?? null,
  });
}

function texts(fields: Readonly<Record<string, unknown>>): Compared {
  return new Map(Object.entries(fields).map(([field, value]) => [field, JSON.stringify(value)]));
}

const UNITS: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** As the API takes it: `256m`. */
function bytesOf(text: string): number {
  return Number(text.slice(0, -1)) * (UNITS[text.slice(-1).toLowerCase()] ?? Number.NaN);
}
