/** An environment and its credentials as the API shows them. Computed at each look, so never out of date (FIELD-CASES B119). */
import { createHash } from 'node:crypto';
import type { ShownEnvironment } from '#catalog';
import { connectionUri, environmentNames } from '#kernel';
import type { EnvironmentView } from '../schemas/environment.ts';
import { toServiceView } from './service-view.ts';

/** Engines are published on loopback, and their certificate names it. */
const CONNECTION_HOST = 'localhost';

/** Enough that two that follow each other never look the same. */
const SEEN_LENGTH = 16;

export function toEnvironmentView(row: ShownEnvironment): EnvironmentView {
  return {
    id: row.id,
    project: row.project,
    name: row.name,
    state: row.state,
    engine: row.engine,
    host: row.host,
    profile: row.profile,
    extensions: [...row.extensions],
    connectionLimit: row.connection_limit,
    labels: row.labels,
    reason: row.reason,
    services: row.services.map((service) => toServiceView(service, row.state)),
    connection: {
      host: CONNECTION_HOST,
      port: row.port,
      database: row.database_name,
      users: environmentNames(row.name, row.id).logins,
      sslmode: 'verify-full',
    },
    createdAt: row.created_at.toISOString(),
    lastObservedAt: row.last_observed_at?.toISOString() ?? null,
  };
}

/** Works as it is, from the host. */
export function hostUri(
  environment: Pick<ShownEnvironment, 'port' | 'database_name'>,
  login: { readonly user: string; readonly password: string },
  caFile: string,
): string {
  const { port, database_name: database } = environment;
  return connectionUri({ host: CONNECTION_HOST, port, database, ...login, sslRootCert: caFile });
}

/**
 * Of all that is shown: what the watcher sees of a service changes no row of the environment. When it looked is no change,
 * since it looks again and again.
 */
export function shownVersion({ version, services }: Pick<ShownEnvironment, 'version' | 'services'>): string {
  if (services.length === 0) return version;
  const seen = JSON.stringify(services.map(({ observed }) => observed));
  return `${version}.${createHash('sha256').update(seen).digest('base64url').slice(0, SEEN_LENGTH)}`;
}
