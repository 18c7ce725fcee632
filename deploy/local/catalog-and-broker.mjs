import { isDeepStrictEqual } from 'node:util';
import { ComposeStack, findCompose } from './compose.mjs';
import { SetupFailure } from './failure.mjs';
import { layOut } from './address-block.mjs';
import { readLocalEnv, writeInstallation, writeLocalEnv } from './installation.mjs';
import { portOf } from './local-env.mjs';
import { chooseFreePorts, expectFree } from './ports.mjs';
import { brokerAnswers, catalogAnswers, untilAnswers } from './readiness.mjs';
import {
  brokerPasswordHash,
  isBrokerPasswordHash,
  isScramVerifier,
  newApiKey,
  newPassword,
  scramVerifier,
} from './secrets.mjs';

/**
 * Catalog and broker of one installation: what they are reached by (`local.env`), and their containers.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 * @typedef {import('./docker-cli.mjs').Docker} Docker
 */

const READY_MS = 120_000;
const LOOPBACK = '127.0.0.1';

/** Below the range from which the kernel lends ports to outgoing connections. */
const SERVICE_PORTS = '20000-29999';

/**
 * Fills in what `local.env` does not say yet, and keeps what it says.
 *
 * @param {string} home
 * @param {Installation} installation
 * @param {Docker} docker
 * @param {boolean} isHostClosed
 * @returns {Promise<Record<string, string>>}
 */
async function settleLocalEnv(home, installation, docker, isHostClosed) {
  const kept = await readLocalEnv(home);
  const [gateway, catalog, broker, engine] = await chooseFreePorts(4);
  const settled = {
    SUREFOOT_URL: `http://${LOOPBACK}:${gateway}`,
    SUREFOOT_API_KEY: newApiKey(),
    SUREFOOT_HOST: 'local',
    SUREFOOT_CATALOG_URL: `postgresql://surefoot:${newPassword()}@${LOOPBACK}:${catalog}/surefoot`,
    SUREFOOT_BROKER_URL: `amqp://surefoot:${newPassword()}@${LOOPBACK}:${broker}`,
    SUREFOOT_ENGINE_PORT: String(engine),
    ...(isHostClosed ? { SUREFOOT_SERVICE_PORTS: SERVICE_PORTS } : {}),
    ...kept,
    // These follow from what was decided for the installation, whatever the file says.
    SUREFOOT_INSTALLATION: installation.id,
    DOCKER_HOST: docker.host,
    SUREFOOT_ENGINE_IMAGE: installation.engineImage ?? '',
    SUREFOOT_NETWORK_POOL: layOut(installation.block).pool,
  };
  if (!isDeepStrictEqual(settled, kept)) await writeLocalEnv(home, settled);
  return settled;
}

/**
 * @param {string} home
 * @param {Installation} installation
 * @param {Docker} docker
 * @param {string} cache
 * @param {import('./progress.mjs').Progress} progress
 * @param {boolean} isHostClosed to its containers: only then are ports offered for services
 * @returns {Promise<Record<string, string>>} what local.env says
 */
export async function startStack(home, installation, docker, cache, progress, isHostClosed) {
  const localEnv = await settleLocalEnv(home, installation, docker, isHostClosed);
  keepOneWayForms(installation, localEnv);
  await writeInstallation(home, installation);
  const compose = new ComposeStack(await findCompose(cache, progress), docker, variablesOf(installation, localEnv));
  await progress.step('catalog and broker', async (note) => {
    const digest = await compose.digest();
    const running = await containersOf(docker, installation, ['--filter', 'status=running']);
    if (running.length < 2 || installation.stackDigest !== digest) {
      if (running.length === 0) {
        await expectFree(portOf(localEnv, 'SUREFOOT_CATALOG_URL'), 'SUREFOOT_CATALOG_URL');
        await expectFree(portOf(localEnv, 'SUREFOOT_BROKER_URL'), 'SUREFOOT_BROKER_URL');
      }
      note('docker compose up');
      await compose.up();
      installation.stackDigest = digest;
      await writeInstallation(home, installation);
    }
    note('waiting until they answer');
    await Promise.all([
      untilReady(docker, installation, 'catalog', catalogAnswers, portOf(localEnv, 'SUREFOOT_CATALOG_URL')),
      untilReady(docker, installation, 'broker', brokerAnswers, portOf(localEnv, 'SUREFOOT_BROKER_URL')),
    ]);
    await prepareCatalog(home, installation, docker, localEnv);
  });
  return localEnv;
}

/**
 * Stable from start to start: Compose makes a container again when what it was given has changed.
 *
 * @param {Installation} installation
 * @param {Record<string, string>} localEnv
 */
function keepOneWayForms(installation, localEnv) {
  installation.superuserVerifier ??= scramVerifier(newPassword());
  const password = new URL(localEnv.SUREFOOT_BROKER_URL ?? '').password;
  const hash = installation.brokerPasswordHash;
  if (hash === undefined || !isBrokerPasswordHash(password, hash)) {
    installation.brokerPasswordHash = brokerPasswordHash(password);
  }
}

/**
 * @param {Installation} installation
 * @param {Record<string, string>} localEnv
 * @returns {Record<string, string>}
 */
function variablesOf(installation, localEnv) {
  return {
    SUREFOOT_INSTALLATION: installation.id,
    SUREFOOT_CATALOG_IMAGE: installation.catalogImage ?? '',
    SUREFOOT_BROKER_IMAGE: installation.brokerImage ?? '',
    SUREFOOT_CATALOG_PORT: String(portOf(localEnv, 'SUREFOOT_CATALOG_URL')),
    SUREFOOT_BROKER_PORT: String(portOf(localEnv, 'SUREFOOT_BROKER_URL')),
    SUREFOOT_STACK_SUBNET: layOut(installation.block).stack,
    SUREFOOT_CATALOG_SUPERUSER: installation.superuserVerifier ?? '',
    SUREFOOT_BROKER_DEFINITIONS: brokerDefinitions(installation.brokerPasswordHash ?? ''),
  };
}

/**
 * Who may use the broker, in the form that it imports at its start. With definitions of its own it makes no `guest`.
 *
 * @param {string} passwordHash
 */
function brokerDefinitions(passwordHash) {
  return JSON.stringify({
    users: [
      {
        name: 'surefoot',
        password_hash: passwordHash,
        hashing_algorithm: 'rabbit_password_hashing_sha256',
        tags: [],
      },
    ],
    vhosts: [{ name: '/' }],
    permissions: [{ user: 'surefoot', vhost: '/', configure: '.*', write: '.*', read: '.*' }],
  });
}

/**
 * @param {Docker} docker
 * @param {Installation} installation
 * @param {readonly string[]} filters
 */
function containersOf(docker, { id }, filters) {
  const project = `label=com.docker.compose.project=${ComposeStack.projectOf(id)}`;
  return docker.ids(['container', 'ls', '--quiet', '--no-trunc', '--filter', project, ...filters]);
}

/**
 * @param {Docker} docker
 * @param {Installation} installation
 * @param {'catalog' | 'broker'} service
 * @param {(port: number) => Promise<boolean>} answers
 * @param {number} port
 */
async function untilReady(docker, installation, service, answers, port) {
  if (await untilAnswers(answers, port, READY_MS)) return;
  const filter = ['--filter', `label=com.docker.compose.service=${service}`];
  const [container = service] = await containersOf(docker, installation, ['--all', ...filter]);
  const logs = await docker.try(['logs', '--tail', '3', container]);
  const said = `${logs.stdout}${logs.stderr}`.trim().split('\n').slice(-3).join(' / ');
  throw new SetupFailure(
    `the ${service} does not answer on port ${port}: ${said}`,
    `read its log: DOCKER_HOST=${docker.host} docker logs ${container.slice(0, 12)}`,
  );
}

/**
 * The role and the database that our programs use. Said by the superuser from inside the container, where the system
 * vouches for it; repeated for every container, since that changes nothing where they are as they should be.
 *
 * @param {string} home
 * @param {Installation} installation
 * @param {Docker} docker
 * @param {Record<string, string>} localEnv
 */
async function prepareCatalog(home, installation, docker, localEnv) {
  const filters = ['--filter', 'label=com.docker.compose.service=catalog'];
  const [container = ''] = await containersOf(docker, installation, filters);
  const password = new URL(localEnv.SUREFOOT_CATALOG_URL ?? '').password;
  const last = installation.catalogRole;
  if (last?.container === container && isScramVerifier(password, last.verifier)) return;
  const verifier = scramVerifier(password);
  await docker.run(
    [
      'exec',
      '--interactive',
      '--user',
      'postgres',
      container,
      'psql',
      '--no-psqlrc',
      '--quiet',
      '--dbname',
      'postgres',
    ],
    { input: catalogRoleSql(verifier) },
  );
  installation.catalogRole = { container, verifier };
  await writeInstallation(home, installation);
}

/** @param {string} verifier in letters that need no quoting but the quotes around them */
function catalogRoleSql(verifier) {
  return `
\\set ON_ERROR_STOP on
SELECT 'CREATE ROLE surefoot' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'surefoot')
\\gexec
ALTER ROLE surefoot LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD '${verifier}';
SELECT 'CREATE DATABASE surefoot OWNER surefoot' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'surefoot')
\\gexec
REVOKE ALL ON DATABASE surefoot FROM PUBLIC;
`;
}
