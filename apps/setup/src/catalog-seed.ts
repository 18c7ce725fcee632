/** First rows of the catalog, and the request for the first engine. */
import { createHash, randomUUID } from 'node:crypto';
import { hostIdentity, requestFirstEngine, requestServiceRules, seedCatalog, type Catalog } from '#catalog';
import { InvalidSettings, type Settings } from '#settings';
import { prepareIdentity, type Say } from './host-state.ts';

const ADMIN_KEY = 'admin';
const PROJECT = 'default';
const ENGINE = 'main';

export async function fillCatalog(catalog: Catalog, settings: Settings, say: Say): Promise<void> {
  const { installation, hostId, apiKey, paths } = settings;
  if (apiKey === undefined) throw new InvalidSettings(paths.localEnv, ['SUREFOOT_API_KEY is missing']);
  const known = await catalog.transaction((tx) => hostIdentity(tx, hostId));
  const seed = {
    installation,
    host: {
      id: hostId,
      identity: known ?? prepareIdentity(paths.epoch),
      services: {
        networksMax: Math.min(settings.serviceNetworksMax, networksIn(settings.networkPool)),
        address: settings.serviceAddress,
        ports: settings.servicePorts,
      },
    },
    project: { id: randomUUID(), name: PROJECT },
    adminKey: { id: randomUUID(), name: ADMIN_KEY, hash: createHash('sha256').update(apiKey).digest() },
  };
  for (const made of await catalog.transaction((tx) => seedCatalog(tx, seed))) say(`registered ${made}`);
}

/** Networks of sixteen addresses, but for the engine's own. */
function networksIn(pool: string): number {
  return 2 ** (28 - Number(pool.slice(pool.indexOf('/') + 1))) - 1;
}

export async function requestEngine(catalog: Catalog, settings: Settings, say: Say): Promise<void> {
  const engine = {
    engineId: randomUUID(),
    operationId: randomUUID(),
    jobId: randomUUID(),
    identity: randomUUID(),
    hostId: settings.hostId,
    name: ENGINE,
    image: settings.engineImage,
    port: settings.enginePort,
    networkPool: settings.networkPool,
  };
  if (await catalog.transaction((tx) => requestFirstEngine(tx, engine)))
    say(`requested engine ${ENGINE} from ${settings.engineImage} on port ${settings.enginePort}`);
}

/** Engines of an older installation let no services in; see planEngineRules. */
export async function requestRules(catalog: Catalog, { hostId }: Settings, say: Say): Promise<void> {
  const ids = { operationId: randomUUID(), jobId: randomUUID() };
  if (await catalog.transaction((tx) => requestServiceRules(tx, hostId, ids)))
    say('requested the rules that let services reach the engine');
}
