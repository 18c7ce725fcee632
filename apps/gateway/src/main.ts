/** The gateway process: the REST API of one catalog. For logs it asks the worker through the broker; it speaks to nothing else (DESIGN §10). */
import 'reflect-metadata';
import type { Logger } from '#kernel';
import { homeFromEnvironment, loadSettings, readSealingKey } from '#settings';
import { createLogger } from '#telemetry';
import { CatalogLink, catalogSource } from './catalog-link.ts';
import { createGateway } from './gateway.ts';
import type { ServiceLogs } from './logs/service-logs.ts';
import type { OperationFeed } from './operations/operation-feed.ts';
import { OPERATION_FEED, SERVICE_LOGS } from './tokens.ts';

/** Requests in hand get this long after SIGTERM. */
const STOP_AFTER_MS = 5_000;

const settings = loadSettings(homeFromEnvironment(process.env));
const logger = createLogger({ process: 'gateway', hostId: settings.hostId, level: settings.logLevel });
await serve().catch((error: unknown) => fail(logger, error));

async function serve(): Promise<void> {
  const source = catalogSource(settings.catalogUrl);
  const link = new CatalogLink(source, logger);
  const key = readSealingKey(settings.paths.key);
  const { paths, brokerUrl } = settings;
  const { app } = await createGateway({ source, link, logger, sealingKey: () => key, caFile: paths.caFile, brokerUrl });
  const { hostname, port } = new URL(settings.url);
  await app.listen(Number(port === '' ? 80 : port), hostname);
  logger.info('gateway listens', { url: settings.url });

  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    logger.info('gateway stops', { signal });
    setTimeout(() => process.exit(0), STOP_AFTER_MS).unref();
    app.get<OperationFeed>(OPERATION_FEED).close();
    const logsEnded = app.get<ServiceLogs>(SERVICE_LOGS).close();
    void app
      .close()
      .then(() => logsEnded)
      .then(() => link.close())
      .then(() => process.exit(0))
      .catch((error: unknown) => fail(logger, error));
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  await link.establish();
}

function fail(log: Logger, error: unknown): never {
  log.error('gateway failed', { error });
  process.exit(1);
}
