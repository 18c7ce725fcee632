import {
  type CatalogSource,
  type EngineEntity,
  findEngine,
  listEngines,
  type ShownCase,
  shownCase,
  shownCases,
} from '#catalog';
import { isUuid, Problem } from '#kernel';
import { fromTimeCursor, type Page, pageLimit, timeCursor, toPage } from '../http/page.ts';
import type { CaseQuery, CaseView, EngineView } from '../schemas/admin.ts';

/** What operators look at. It belongs to no project, so the role alone decides. */
export class Admin {
  readonly #source: CatalogSource;

  constructor(source: CatalogSource) {
    this.#source = source;
  }

  async engines(): Promise<Page<EngineView>> {
    return { items: (await listEngines(this.#source)).map(toEngineView), nextCursor: null };
  }

  /** @throws Problem `not_found` */
  async engine(id: string): Promise<EngineView> {
    const engine = isUuid(id) ? await findEngine(this.#source, id) : null;
    if (engine === null) throw new Problem('not_found', 'there is no such engine');
    return toEngineView(engine);
  }

  async cases(query: CaseQuery): Promise<Page<CaseView>> {
    const limit = pageLimit(query);
    const open = query.state === 'all' ? undefined : query.state !== 'closed';
    const rows = await shownCases(this.#source.catalog, open, limit + 1, fromTimeCursor(query.cursor));
    return toPage(rows, limit, toCaseView, timeCursor);
  }

  /** @throws Problem `not_found` */
  async case(id: string): Promise<CaseView> {
    const found = isUuid(id) ? await shownCase(this.#source.catalog, id) : undefined;
    if (found === undefined) throw new Problem('not_found', 'there is no such case');
    return toCaseView(found);
  }
}

function toEngineView(engine: EngineEntity): EngineView {
  const pinned = engine.generations.find((generation) => generation.generation === engine.generation);
  return {
    id: engine.id,
    name: engine.name,
    host: engine.hostId,
    state: engine.state,
    image: engine.image,
    port: engine.port,
    extensions: engine.extensions,
    generation: engine.generation,
    ruleGeneration: engine.ruleGeneration,
    pin: pinned === undefined ? null : { ...pinned.pin },
    ...(engine.waitingFor === null ? {} : { waitingFor: engine.waitingFor }),
    createdAt: engine.createdAt.toISOString(),
  };
}

function toCaseView(row: ShownCase): CaseView {
  return {
    id: row.id,
    kind: row.kind,
    state: row.closed_at === null ? 'open' : 'closed',
    host: row.host,
    engineId: row.engine_id,
    environmentId: row.environment_id,
    operationId: row.operation_id,
    effectId: row.effect_id,
    reason: row.reason,
    evidence: row.evidence,
    openedAt: row.opened_at.toISOString(),
    closedAt: row.closed_at?.toISOString() ?? null,
  };
}
