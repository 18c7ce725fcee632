/** Services of an environment, as people read them. */
import type { Service } from './api.ts';
import { table } from './terminal.ts';

export function servicesText(services: readonly Service[]): string {
  return table([
    ['SERVICE', 'STATE', 'ADDRESS', 'IMAGE'],
    ...services.map((service) => [service.name, stateText(service), addressText(service), service.image]),
  ]);
}

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
function addressText({ ports }: Service): string {
  if (ports.length === 0) return '-';
  return ports
    .map(({ container, address, host }) => `${host === null ? '…' : `${address}:${host}`} -> ${container}`)
    .join(', ');
}
