/**
 * Operations followed to their end. One look at the catalog serves all streams of this gateway; a stream costs nothing
 * while nothing changes, and outlives an absence of the catalog.
 */
import { Observable, type Subscriber } from 'rxjs';
import { type CatalogSource, CatalogUnavailable, operationsById, type ShownOperation } from '#catalog';
import type { Logger } from '#kernel';
import { isOpen } from '#protocol';
import type { OperationView } from '../schemas/operation.ts';
import { toOperationView } from './operation-view.ts';

const LOOK_EVERY_MS = 250;

interface Follower {
  readonly subscriber: Subscriber<OperationView>;
  /** What was told last, as text. */
  told: string;
}

export class OperationFeed {
  readonly #look: (ids: readonly string[]) => Promise<readonly ShownOperation[]>;
  readonly #logger: Logger;
  readonly #followers = new Map<string, Set<Follower>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(look: (ids: readonly string[]) => Promise<readonly ShownOperation[]>, logger: Logger) {
    this.#look = look;
    this.#logger = logger;
  }

  static of(source: CatalogSource, logger: Logger): OperationFeed {
    return new OperationFeed((ids) => operationsById(source.catalog, ids), logger);
  }

  /** The operation as it is, then each change, until it has ended. */
  follow(operation: ShownOperation): Observable<OperationView> {
    return new Observable<OperationView>((subscriber) => {
      const follower: Follower = { subscriber, told: '' };
      tell(follower, operation);
      if (subscriber.closed) return;
      const others = this.#followers.get(operation.id) ?? new Set();
      this.#followers.set(operation.id, others.add(follower));
      this.#schedule();
      subscriber.add(() => {
        others.delete(follower);
        if (others.size === 0) this.#followers.delete(operation.id);
      });
    });
  }

  /** Ends every stream: the gateway stops, and clients come again. */
  close(): void {
    clearTimeout(this.#timer);
    for (const follower of [...this.#followers.values()].flatMap((others) => [...others]))
      follower.subscriber.complete();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => void this.#tick(), LOOK_EVERY_MS);
  }

  async #tick(): Promise<void> {
    try {
      const ids = [...this.#followers.keys()];
      for (const operation of ids.length === 0 ? [] : await this.#look(ids))
        for (const follower of [...(this.#followers.get(operation.id) ?? [])]) tell(follower, operation);
    } catch (error) {
      if (!(error instanceof CatalogUnavailable)) this.#logger.error('operations could not be followed', { error });
    }
    this.#timer = undefined;
    if (this.#followers.size > 0) this.#schedule();
  }
}

function tell(follower: Follower, operation: ShownOperation): void {
  const view = toOperationView(operation);
  const text = JSON.stringify(view);
  if (text !== follower.told) follower.subscriber.next(view);
  follower.told = text;
  if (!isOpen(operation.state)) follower.subscriber.complete();
}
