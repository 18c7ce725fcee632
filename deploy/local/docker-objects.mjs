/**
 * What an installation has in a Docker daemon, told by its label alone: names are shared with everybody.
 *
 * @typedef {import('./docker-cli.mjs').Docker} Docker
 */

/** @param {string} id */
const labelled = (id) => ['--filter', `label=surefoot.installation=${id}`];

/**
 * @param {Docker} docker
 * @param {string} id the installation's
 */
export async function objectsOf(docker, id) {
  const [containers, networks, volumes] = await Promise.all([
    docker.ids(['container', 'ls', '--all', '--quiet', '--no-trunc', ...labelled(id)]),
    docker.ids(['network', 'ls', '--quiet', '--no-trunc', ...labelled(id)]),
    docker.ids(['volume', 'ls', '--quiet', ...labelled(id)]),
  ]);
  return { containers, networks, volumes };
}

/**
 * @param {Docker} docker
 * @param {string} id
 */
export async function removeObjects(docker, id) {
  const { containers, networks, volumes } = await objectsOf(docker, id);
  await removeContainers(docker, containers);
  if (networks.length > 0) await docker.run(['network', 'rm', ...networks]);
  if (volumes.length > 0) await docker.run(['volume', 'rm', ...volumes]);
}

/**
 * @param {Docker} docker
 * @param {readonly string[]} containers
 */
export async function removeContainers(docker, containers) {
  if (containers.length > 0) await docker.run(['container', 'rm', '--force', '--volumes', ...containers]);
}

/** Longer than a container's own time to stop: the daemon kills what has not stopped by then. */
const STOP_SECONDS = 60;
/** A service that does not listen must not cost every `npm stop` a minute: it loses no more than a request. */
const SERVICE_STOP_SECONDS = 10;

/**
 * @param {Docker} docker
 * @param {readonly string[]} filters which ones; by default all in the daemon
 * @returns {Promise<readonly string[]>} the containers that run
 */
export function runningContainers(docker, filters = []) {
  return docker.ids(['container', 'ls', '--quiet', '--no-trunc', ...filters]);
}

/**
 * @param {Docker} docker
 * @param {string} id
 */
export function runningContainersOf(docker, id) {
  return runningContainers(docker, labelled(id));
}

/**
 * @param {Docker} docker
 * @param {readonly string[]} containers
 */
export async function stopContainers(docker, containers) {
  const services = await runningContainers(docker, ['--filter', 'label=surefoot.kind=service']);
  const others = containers.filter((id) => !services.includes(id));
  // Services first, while what they work with is there.
  await stop(
    docker,
    containers.filter((id) => services.includes(id)),
    SERVICE_STOP_SECONDS,
  );
  await stop(docker, others, STOP_SECONDS);
}

/**
 * @param {Docker} docker
 * @param {readonly string[]} containers
 * @param {number} seconds
 */
async function stop(docker, containers, seconds) {
  if (containers.length === 0) return;
  const deadlineMs = (seconds + 60) * 1000;
  await docker.run(['container', 'stop', '--time', String(seconds), ...containers], { deadlineMs });
}
