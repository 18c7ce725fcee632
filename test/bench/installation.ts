/** The installation that is measured: a private one, made for the run and removed after it, or one that runs already. */
import { Catalog } from '#catalog';
import type { Settings } from '#settings';
import { enginePlace, loadSettings } from '#settings';

/** How the one engine is reached; the shape is `EnginePlace` of libs/effects. */
export type EngineInUse = ReturnType<typeof enginePlace>;

export interface Installation {
  readonly settings: Settings;
  readonly apiKey: string;
  readonly catalog: Catalog;
  readonly engine: EngineInUse;
  /** Made for this run: it may be filled up, and gets a trigger that tells when an operation ends. */
  readonly isPrivate: boolean;
  /** Starts again what the bench has stopped, by the set-up's own means: `npm start`. */
  restore(): Promise<void>;
  /** The same for the daemon, catalog and broker alone. */
  restoreStack(): Promise<void>;
  /** `npm stop`. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** What is used of the scripts in `test` and `deploy/local`, which are plain JavaScript. */
interface TestStack {
  bringUpPrivateStack(): Promise<string>;
  takeDownPrivateStack(): Promise<void>;
}
interface LocalStack {
  bringUp(where: Where): Promise<unknown>;
  bringUpStack(where: Where): Promise<unknown>;
  takeDown(where: Where): Promise<void>;
}
interface Where {
  readonly home: string;
}

export async function openInstallation(home: string | undefined): Promise<Installation> {
  const tests = (await import(new URL('../stack.mjs', import.meta.url).href)) as TestStack;
  const local = (await import(new URL('../../deploy/local/stack.mjs', import.meta.url).href)) as LocalStack;
  const isPrivate = home === undefined;
  if (isPrivate) removeOnSignal(tests);
  try {
    const settings = loadSettings(home ?? (await tests.bringUpPrivateStack()));
    if (settings.apiKey === undefined) throw new Error(`${settings.paths.localEnv} holds no SUREFOOT_API_KEY`);
    const where: Where = { home: settings.home };
    const catalog = Catalog.open({
      url: settings.catalogUrl,
      applicationName: 'surefoot bench',
      maxConnections: 2,
    });
    return {
      settings,
      apiKey: settings.apiKey,
      catalog,
      engine: await readyEngine(settings, catalog),
      isPrivate,
      restore: async () => {
        await local.bringUp(where);
      },
      restoreStack: async () => {
        await local.bringUpStack(where);
      },
      stop: () => local.takeDown(where),
      close: async () => {
        await catalog.close();
        if (isPrivate) await tests.takeDownPrivateStack();
      },
    };
  } catch (error) {
    if (isPrivate) await tests.takeDownPrivateStack();
    throw error;
  }
}

/** An interrupted run leaves nothing behind. */
function removeOnSignal(tests: TestStack): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      console.log(`\n${signal}: taking the private stack down`);
      void tests.takeDownPrivateStack().finally(() => process.exit(1));
    });
}

const ENGINE_DEADLINE_MS = 180_000;
const ENGINE_INTERVAL_MS = 200;

/** A new installation makes its engine by an operation of its own, which may still run. */
async function readyEngine(settings: Settings, catalog: Catalog): Promise<EngineInUse> {
  const giveUpAt = Date.now() + ENGINE_DEADLINE_MS;
  for (;;) {
    const [engine] = await catalog.query<{ id: string; name: string; port: number; identity: string }>(
      `select id, name, port, identity from engines where state = 'ready' order by created_at limit 1`,
    );
    if (engine !== undefined) return enginePlace(settings, engine);
    if (Date.now() > giveUpAt)
      throw new Error(`no engine is ready after ${ENGINE_DEADLINE_MS / 1000} s: see ${settings.paths.log}/worker.log`);
    await new Promise((resolve) => setTimeout(resolve, ENGINE_INTERVAL_MS));
  }
}
