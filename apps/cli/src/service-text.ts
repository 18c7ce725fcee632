/** Services of an environment, as people read them. */
import type { Service } from './api.ts';
import { fields, table } from './terminal.ts';

export function servicesText(services: readonly Service[]): string {
  return table([
    ['SERVICE', 'STATE', 'ADDRESS', 'IMAGE'],
    ...services.map((service) => [service.name, stateText(service), addressText(service), service.image]),
  ]);
}

/** What it was asked for with, as far as it is shown. */
export function serviceDetails({ name, health, limits, user, readOnly, env, secrets }: Service): string {
  return fields({
    service: name,
    health: healthText(health),
    memory: memoryText(limits.memory),
    cpus: limits.cpus,
    pids: limits.pids,
    user: user ?? 'as the image says',
    readOnly: readOnly ? 'yes' : 'no',
    variables: env.length === 0 ? undefined : env.join(', '),
    secrets: secrets.length === 0 ? undefined : secrets.join(', '),
  });
}

function healthText({ http, tcp, deadlineSeconds }: Service['health']): string {
  const within = `within ${deadlineSeconds} s`;
  if (http !== undefined) return `GET ${http.path} at port ${http.port} answers, ${within}`;
  if (tcp !== undefined) return `port ${tcp.port} takes connections, ${within}`;
  return `the check of its image, ${within}, or that it keeps running`;
}

/** As it is asked for: the largest unit that divides it. */
function memoryText(bytes: number): string {
  const [unit, size] = MEMORY_UNITS.find(([, unitBytes]) => bytes % unitBytes === 0) ?? ['', 1];
  return `${bytes / size}${unit}`;
}

const MEMORY_UNITS: readonly (readonly [string, number])[] = [
  ['g', 1024 ** 3],
  ['m', 1024 ** 2],
  ['k', 1024],
];

function stateText({ state, exitCode, outOfMemory, restarts }: Service): string {
  const ended = state === 'exited' || state === 'restarting';
  const notes = [
    ended && exitCode !== undefined ? `code ${exitCode}` : undefined,
    outOfMemory === true ? 'out of memory' : undefined,
    restarts === undefined || restarts === 0 ? undefined : `restarts: ${restarts}`,
  ].filter((note) => note !== undefined);
  return notes.length === 0 ? state : `${state} (${notes.join(', ')})`;
}

/** Where each published port of the container is found. */
function addressText({ state, ports }: Service): string {
  if (ports.length === 0 || state === 'removed') return '-';
  return ports
    .map(({ container, address, host }) => `${host === null ? '…' : `${address}:${host}`} -> ${container}`)
    .join(', ');
}

/** @returns what people call a field of a request for these services: `service api, ports[0]` for `services[2].ports[0]` */
export function serviceNamer(services: readonly unknown[]): (field: string) => string {
  return (field) => {
    const [, index, rest = ''] = /^services\[(\d+)\]\.?(.*)$/.exec(field) ?? [];
    const { name } = (services[Number(index)] ?? {}) as { readonly name?: unknown };
    if (index === undefined || typeof name !== 'string' || name === '') return field;
    return rest === '' ? `service ${name}` : `service ${name}, ${rest}`;
  };
}
