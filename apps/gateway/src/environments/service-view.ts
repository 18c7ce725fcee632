/** A service as the API shows it: what was asked for, and what the watcher last saw of its container. */
import type { ShownService } from '#catalog';
import type { EnvironmentState } from '#protocol';
import type { ServiceView, ShownServiceState } from '../schemas/service.ts';

/** Left out on purpose: values of variables, where people keep passwords, and the command, for the same reason. */
export function toServiceView(row: ShownService, environment: EnvironmentState): ServiceView {
  const { spec, identities } = row;
  // What was seen of a container that is gone says nothing about the next one.
  const observed = identities === null ? null : row.observed;
  return {
    name: row.name,
    image: row.image,
    imageDigest: identities?.imageId ?? null,
    state: observed?.state ?? (identities === null ? withoutContainer(environment) : unseen(environment)),
    ports: spec.ports.map((container) => ({
      container,
      address: row.address,
      host: identities?.ports[container] ?? null,
    })),
    env: Object.keys(spec.env).sort(),
    secrets: [...row.secret_names],
    health: spec.health,
    limits: { memory: spec.limits.memoryBytes, cpus: spec.limits.cpus, pids: spec.limits.pids },
    readOnly: spec.readOnly,
    user: spec.user ?? null,
    ...(observed?.startedAt === undefined ? {} : { startedAt: observed.startedAt }),
    ...(observed === null ? {} : { restarts: observed.restarts }),
    ...(observed?.exitCode === undefined ? {} : { exitCode: observed.exitCode }),
    ...(observed?.outOfMemory === undefined ? {} : { outOfMemory: observed.outOfMemory }),
    observedAt: (observed === null ? null : row.observed_at)?.toISOString() ?? null,
  };
}

function withoutContainer(environment: EnvironmentState): ShownServiceState {
  switch (environment) {
    case 'provisioning':
    case 'blocked':
      return 'pending';
    case 'deleting':
    case 'deleted':
    case 'failed':
      return 'removed';
    case 'ready':
    case 'degraded':
    case 'updating':
    case 'suspended':
      return 'missing';
  }
}

/** Until the watcher has looked. An environment is ready once each service was well. */
function unseen(environment: EnvironmentState): ShownServiceState {
  return environment === 'provisioning' ? 'created' : 'running';
}
