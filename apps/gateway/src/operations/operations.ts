import { createHash, randomUUID } from 'node:crypto';
import {
  cancelOperation,
  type CatalogSource,
  type Idempotency,
  operationsById,
  type ShownOperation,
  shownOperations,
} from '#catalog';
import { isUuid, type Logger, Problem } from '#kernel';
import { OPERATIONS, roleIncludes } from '#protocol';
import { type Principal, sees } from '../access/principal.ts';
import { Batched } from '../batched.ts';
import { commit } from '../commit.ts';
import { fromTimeCursor, type Page, pageLimit, timeCursor, toPage } from '../http/page.ts';
import type { OperationQuery, OperationView } from '../schemas/operation.ts';
import { toOperationView } from './operation-view.ts';

export class Operations {
  readonly #source: CatalogSource;
  readonly #logger: Logger;
  readonly #byId: Batched<ShownOperation>;

  constructor(source: CatalogSource, logger: Logger) {
    this.#source = source;
    this.#logger = logger;
    this.#byId = new Batched((ids) => operationsById(source.catalog, ids));
  }

  /** @throws Problem `not_found`, also for one that the caller may not see */
  async find(principal: Principal, id: string): Promise<ShownOperation> {
    const operation = isUuid(id) ? await this.#byId.find(id) : undefined;
    if (operation === undefined || !sees(principal, operation.project_id))
      throw new Problem('not_found', 'there is no such operation');
    return operation;
  }

  async list(principal: Principal, query: OperationQuery): Promise<Page<OperationView>> {
    const limit = pageLimit(query);
    const { environment, state, kind } = query;
    const rows = await shownOperations(
      this.#source.catalog,
      {
        ...(environment === undefined ? {} : { environment }),
        ...(state === undefined ? {} : { state }),
        ...(kind === undefined ? {} : { kind }),
      },
      principal.projects,
      limit + 1,
      fromTimeCursor(query.cursor),
    );
    return toPage(rows, limit, toOperationView, timeCursor);
  }

  /** Whoever may ask for an operation may cancel it. */
  async cancel(principal: Principal, id: string, more: { readonly idempotency?: Idempotency }): Promise<void> {
    const { id: operationId, kind } = await this.find(principal, id);
    const needed = OPERATIONS[kind].role;
    if (!roleIncludes(principal.role, needed))
      throw new Problem('forbidden', `cancelling ${kind} needs the role ${needed}`);
    const idempotency = more.idempotency ?? ownKey(principal, operationId);
    await commit(this.#source, (tx) => cancelOperation(tx, { operationId, requestedBy: principal, idempotency }));
    this.#logger.info('operation cancel accepted', { operationId, kind });
  }
}

/** For a request that came without one: its own repetition, and nothing else, has the same. No caller can send a blank. */
function ownKey({ keyId }: Principal, operationId: string): Idempotency {
  return { apiKeyId: keyId, key: `cancel ${randomUUID()}`, digest: createHash('sha256').update(operationId).digest() };
}
