/**
 * Set-up, run by `npm start` before the other programs. Each step finds what is there and leaves it, so it is repeated at
 * every start, and goes on where an earlier run was interrupted.
 */
import { declareTopology, jobTopology } from '#broker';
import { Catalog, migrateCatalog } from '#catalog';
import { homeFromEnvironment, loadSettings, type Settings } from '#settings';
import { fillCatalog, requestEngine, requestRules } from './catalog-seed.ts';
import { makeAuthority } from './certificate-authority.ts';
import { makeFolders, makeSealingKey, type Say } from './host-state.ts';

async function setUp(settings: Settings, say: Say): Promise<void> {
  const { paths, installation, hostId, catalogUrl, brokerUrl } = settings;
  makeFolders(paths);
  makeSealingKey(paths.key, say);
  await makeAuthority(paths, installation, say);
  for (const name of await migrateCatalog(catalogUrl)) say(`migrated the catalog: ${name}`);
  await declareTopology(brokerUrl, jobTopology(hostId));
  say(`queue ${jobTopology(hostId).queue} is declared`);
  const catalog = Catalog.open({ url: catalogUrl, applicationName: 'surefoot set-up', maxConnections: 1 });
  try {
    await fillCatalog(catalog, settings, say);
    // Last: whoever sees the engine's operation finds everything that it needs.
    await requestEngine(catalog, settings, say);
    await requestRules(catalog, settings, say);
  } finally {
    await catalog.close();
  }
}

/** The chain of causes in one line: what is wrong stands last. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return cause === undefined ? error.message : `${error.message}: ${explain(cause)}`;
}

try {
  await setUp(loadSettings(homeFromEnvironment(process.env)), (line) => console.log(line));
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
