/** Where things are inside an engine's container, and what they are called. The entrypoint and the configuration agree. */

export const CONTAINER_CONF = '/etc/surefoot';
export const CONTAINER_SOCKETS = '/run/surefoot-socket';
export const CONTAINER_PORT = 5432;
/** In the root of the volume, beside the data directory. */
export const VOLUME_MARK_FILE = 'surefoot.mark';
export const DATA_FOLDER = 'pgdata';

/** Files of the mounted folder that somebody besides the entrypoint reads. */
export const RULE_FILE = 'pg_hba.conf';
export const CERTIFICATE_FILE = 'server.crt';
/** What the pin's digest covers besides the container: rules have generations of their own. */
export const PINNED_FILES = ['entrypoint.sh', 'postgresql.surefoot.conf'] as const;

/** Networks and volumes carry the attempt in their name, so that a name is never used again. */
export function attemptName(token: string): string {
  return `surefoot-${token}`;
}

export function engineContainerName(token: string): string {
  return `surefoot-engine-${token}`;
}
