/** The reconciler: passes that run without input (DESIGN §8). Several may run side by side. */
import 'reflect-metadata';
import { once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { BackOff, Publisher } from '#broker';
import { assertCatalogVersion, Catalog, CatalogListener, CatalogUnavailable } from '#catalog';
import { STOP_GRACE_MS, type Logger } from '#kernel';
import { homeFromEnvironment, loadSettings } from '#settings';
import { createLogger } from '#telemetry';
import type { PassLoop } from './pass-loop.ts';
import { RELAY_LOOP, reconcilerModule } from './reconciler-module.ts';
import { SignsOfLife } from './signs-of-life.ts';

const settings = loadSettings(homeFromEnvironment(process.env));
const logger = createLogger({ process: 'reconciler', hostId: settings.hostId, level: settings.logLevel });
const stopping = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort());

try {
  await run();
} catch (error) {
  logger.error('reconciler ends with an error', { error });
  process.exitCode = 1;
}

async function run(): Promise<void> {
  const app = await NestFactory.createApplicationContext(reconcilerModule(settings, logger), {
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  const catalog = app.get(Catalog);
  const loop = app.get<PassLoop>(RELAY_LOOP);
  const listener = app.get(CatalogListener);
  const signs = app.get(SignsOfLife);
  try {
    if (!(await catalogFits(catalog, logger))) return;
    loop.start();
    listener.start();
    signs.ready();
    logger.info('reconciler is ready');
    if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
    logger.info('reconciler stops');
  } finally {
    endAnyway(signs);
    await listener.close();
    await loop.stop();
    await app.get(Publisher).close();
    await catalog.close();
    signs.remove();
    await app.close();
  }
}

/** What is in hand may be cut off at any point: that is the tested case. So silent peers cannot keep this process. */
function endAnyway(signs: SignsOfLife): void {
  setTimeout(() => {
    logger.warn('reconciler ends without an answer from catalog or broker');
    signs.remove();
    process.exit();
  }, STOP_GRACE_MS).unref();
}

/** Waits for a catalog that is away. @returns false when it was told to stop meanwhile; @throws when it does not fit */
async function catalogFits(catalog: Catalog, log: Logger): Promise<boolean> {
  const backOff = new BackOff();
  for (let tries = 0; !stopping.signal.aborted; tries += 1) {
    try {
      await assertCatalogVersion(catalog);
      return true;
    } catch (error) {
      if (!(error instanceof CatalogUnavailable)) throw error;
      if (tries === 0) log.warn('reconciler waits for the catalog', { error });
      await backOff.wait(stopping.signal);
    }
  }
  return false;
}
