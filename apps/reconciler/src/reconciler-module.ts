/** The parts of the reconciler, and who gets what. */
import { Module, type DynamicModule } from '@nestjs/common';
import { Publisher } from '#broker';
import { Catalog, CatalogListener, OUTBOX_CHANNEL } from '#catalog';
import type { Logger } from '#kernel';
import type { Settings } from '#settings';
import { PassLoop } from './pass-loop.ts';
import { relayPass } from './passes/relay/execute.ts';
import { SignsOfLife } from './signs-of-life.ts';

/** Shorter than the catalog's patience with an idle transaction, in which a batch is published. */
const PUBLISH_DEADLINE_MS = 4_000;

export const RELAY_LOOP = Symbol('relay loop');

@Module({})
class ReconcilerModule {}

export function reconcilerModule(settings: Settings, logger: Logger): DynamicModule {
  const { catalogUrl, brokerUrl, paths } = settings;
  const catalogOptions = { url: catalogUrl, applicationName: 'surefoot reconciler', maxConnections: 2 };
  return {
    module: ReconcilerModule,
    providers: [
      { provide: Catalog, useFactory: () => Catalog.open(catalogOptions) },
      {
        provide: Publisher,
        useFactory: () =>
          new Publisher({ url: brokerUrl, name: 'surefoot reconciler', deadlineMs: PUBLISH_DEADLINE_MS }),
      },
      { provide: SignsOfLife, useFactory: () => new SignsOfLife(paths.run) },
      {
        provide: RELAY_LOOP,
        inject: [Catalog, Publisher, SignsOfLife],
        useFactory: (catalog: Catalog, publisher: Publisher, signs: SignsOfLife) =>
          new PassLoop(relayPass({ catalog, publisher, logger }), logger, (end) => signs.ended(end)),
      },
      {
        provide: CatalogListener,
        inject: [RELAY_LOOP],
        useFactory: (loop: PassLoop) => new CatalogListener(catalogOptions, OUTBOX_CHANNEL, () => loop.hint()),
      },
    ],
  };
}
