/**
 * The worker: the one process of a host that acts. Lock, then recovery, then the queue; in that order, always.
 */
import 'reflect-metadata';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { JobServer, jobTopology, KeepErrors } from '#broker';
import { assertCatalogVersion, Catalog, CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import { assertLocalFileSystem, HostLockRefused, takeHostLock } from '#fencing';
import type { Logger } from '#kernel';
import { JOB_LOOK_INTERVAL_MS, STOP_GRACE_MS } from '#kernel';
import { RecordFolders, replaceFile, tidyEpoch } from '#receipts';
import { homeFromEnvironment, loadSettings, readSealingKey } from '#settings';
import { createLogger } from '#telemetry';
import { jobsModule } from './jobs-module.ts';
import { Jobs } from './jobs.ts';
import { Pair } from './pair.ts';
import { persistently } from './persistently.ts';
import { Places } from './places.ts';
import type { RecoverParts } from './recover.ts';
import { recoverPatiently } from './start-up.ts';
import { LogWatch } from './watch/logs.ts';
import { watchServices } from './watch/services.ts';

/** How long the guardian and runner of a worker that was just killed may take to be gone. */
const LOCK_WAIT_S = 10;

const settings = loadSettings(homeFromEnvironment(process.env));
const log = createLogger({ process: 'worker', hostId: settings.hostId, level: settings.logLevel });
const readyFile = join(settings.paths.run, 'worker.ready');
const stopping = new AbortController();

let code = 1;
try {
  code = await main();
} catch (error) {
  log.error('worker ends with an error', { error });
}
// Whatever still holds the process would hold the host lock with it.
process.exit(code);

async function main(): Promise<number> {
  assertLocalFileSystem(settings.home);
  const lock = await takeLock(log);
  if (lock === undefined) return 3;
  // Only under the lock: until then it is another worker's.
  rmSync(readyFile, { force: true });
  const catalog = Catalog.open({ url: settings.catalogUrl, applicationName: 'surefoot worker', maxConnections: 4 });
  const pair = new Pair(lock.descriptor, log);
  const places = new Places(catalog, settings, log);
  const stop = stopOnSignal(pair);
  // Logs are shown whatever the jobs wait for.
  const logs = new LogWatch({ settings, log });
  logs.start();
  try {
    await persistently(log, stopping.signal, () => assertCatalogVersion(catalog));
    const records = new RecordFolders(settings.paths);
    tidyEpoch(settings.paths.epoch);
    // Beside everything else, recovery included: it only reads.
    watchServices({ settings, catalog, log, stopping: stopping.signal }).catch((error: unknown) => {
      log.error('services are no longer watched', { error });
    });
    const recovery: RecoverParts = {
      hostId: settings.hostId,
      catalog,
      records,
      log,
      countKnownTokens: (engineId, tokens) => places.countKnownTokens(engineId, tokens),
    };
    await recoverPatiently(recovery, places, stopping.signal);
    const fatal = Promise.withResolvers<never>();
    const jobs = new Jobs({
      settings,
      sealingKey: readSealingKey(settings.paths.key),
      catalog,
      records,
      pair,
      log,
      stopping: stopping.signal,
      places,
      recovery,
      onFatal: fatal.reject,
    });
    await pair.readyOr(stopping.signal);
    const app = await consume(jobs);
    replaceFile(readyFile, `${JSON.stringify({ pid: process.pid, since: new Date().toISOString() })}\n`);
    log.info('worker is ready');
    await Promise.race([lookUntilStopped(jobs, places, pair), fatal.promise]);
    await app.close();
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) return 0;
    throw error;
  } finally {
    stop.abort();
    rmSync(readyFile, { force: true });
    await Promise.all([pair.stop(), logs.close()]);
    places.close();
    await catalog.close();
  }
}

async function takeLock(logger: Logger): Promise<{ readonly descriptor: number } | undefined> {
  try {
    return await takeHostLock(settings.installation, settings.hostId, process.env['XDG_RUNTIME_DIR'], LOCK_WAIT_S);
  } catch (error) {
    if (!(error instanceof HostLockRefused)) throw error;
    logger.error('worker is refused the host lock', { code: error.code, error });
    return undefined;
  }
}

async function consume(jobs: Jobs): Promise<INestMicroservice> {
  const strategy = new JobServer({ url: settings.brokerUrl, topology: jobTopology(settings.hostId), logger: log });
  const app = await NestFactory.createMicroservice(jobsModule(jobs), { strategy, logger: ['error', 'warn'] });
  app.useGlobalFilters(new KeepErrors());
  await app.listen();
  return app;
}

/** The worker also looks: a message that was lost costs delay and nothing else. */
async function lookUntilStopped(jobs: Jobs, places: Places, pair: Pair): Promise<void> {
  while (!stopping.signal.aborted) {
    try {
      if (!jobs.busy) {
        await places.lookAtEngines();
        for (const engine of places.known) pair.prepare({ type: 'prepare', engine });
        await jobs.look();
      }
    } catch (error) {
      const away = error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown;
      if (!away && !stopping.signal.aborted) throw error;
    }
    await setTimeout(JOB_LOOK_INTERVAL_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
}

/**
 * On SIGTERM no new effect is begun; the one in hand may finish and be settled. After the grace period its runner is
 * killed, and its receipt is left to recovery.
 */
function stopOnSignal(pair: Pair): AbortController {
  const done = new AbortController();
  const onSignal = (): void => {
    if (stopping.signal.aborted) return;
    log.info('worker is asked to stop');
    stopping.abort();
    setTimeout(STOP_GRACE_MS, undefined, { signal: done.signal }).then(
      () => pair.stop(),
      () => undefined,
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return done;
}
