/** Services of a new environment: what was asked for, with secrets sealed before they go anywhere (DESIGN §10). */
import { randomUUID } from 'node:crypto';
import type { ServiceToCreate } from '#catalog';
import type { ServiceSpec } from '#protocol';
import { seal, serviceSecretAad } from '#settings';
import type { ServiceToCreateBody } from '../schemas/service.ts';

export function newServices(
  sealingKey: () => Buffer,
  services: readonly ServiceToCreateBody[],
): readonly ServiceToCreate[] {
  return services.map((service) => {
    const id = randomUUID();
    const secrets = Object.entries(service.secrets).map(([name, value]) => ({
      name,
      sealed: seal(sealingKey(), value, serviceSecretAad(id, name)),
    }));
    return { id, name: service.name, image: service.image, spec: toSpec(service), secrets };
  });
}

/** Whether any has a secret: such a request is recognised again by a keyed digest. */
export function haveSecrets(services: readonly ServiceToCreateBody[]): boolean {
  return services.some(({ secrets }) => Object.keys(secrets).length > 0);
}

/** Named field by field: the catalog keeps it as it is, and no secret may ever get into it. */
function toSpec({ command, env, ports, health, limits, readOnly, user }: ServiceToCreateBody): ServiceSpec {
  const { http, tcp, deadlineSeconds } = health;
  return {
    command,
    env,
    ports,
    health: { ...(http === undefined ? {} : { http }), ...(tcp === undefined ? {} : { tcp }), deadlineSeconds },
    limits: { memoryBytes: limits.memory, cpus: limits.cpus, pids: limits.pids },
    readOnly,
    ...(user === undefined ? {} : { user }),
  };
}
