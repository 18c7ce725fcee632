import { randomUUID } from 'node:crypto';
import {
  acceptEnvironmentCreate,
  acceptEnvironmentDelete,
  type CatalogSource,
  environmentsById,
  EnvironmentIdUsed,
  type Idempotency,
  type Placement,
  placeEnvironment,
  type ShownEnvironment,
  shownEnvironments,
} from '#catalog';
import { environmentNames, isUuid, type Logger, Problem } from '#kernel';
import { type Principal, sees } from '../access/principal.ts';
import { Batched } from '../batched.ts';
import { commit } from '../commit.ts';
import { fieldFault } from '../http/field-faults.ts';
import { fromTimeCursor, type Page, pageLimit, timeCursor, toPage } from '../http/page.ts';
import type { Projects } from '../projects/projects.ts';
import type { EnvironmentQuery, EnvironmentToCreate, EnvironmentView } from '../schemas/environment.ts';
import { toEnvironmentView } from './environment-view.ts';
import { newLogins } from './logins.ts';
import { newServices } from './services.ts';

/** New ids begin with the same eight digits once in four thousand million; three times in a row is something else. */
const ID_TRIES = 3;

export class Environments {
  readonly #source: CatalogSource;
  readonly #projects: Projects;
  readonly #sealingKey: () => Buffer;
  readonly #logger: Logger;
  readonly #byId: Batched<ShownEnvironment>;

  constructor(source: CatalogSource, projects: Projects, sealingKey: () => Buffer, logger: Logger) {
    this.#source = source;
    this.#projects = projects;
    this.#sealingKey = sealingKey;
    this.#logger = logger;
    this.#byId = new Batched((ids) => environmentsById(source.catalog, ids));
  }

  /** @throws Problem `not_found`, also for one that the caller may not see */
  async find(principal: Principal, id: string): Promise<ShownEnvironment> {
    const environment = isUuid(id) ? await this.#byId.find(id) : undefined;
    if (environment === undefined || !sees(principal, environment.project_id))
      throw new Problem('not_found', 'there is no such environment');
    return environment;
  }

  async list(principal: Principal, projectName: string, query: EnvironmentQuery): Promise<Page<EnvironmentView>> {
    const project = await this.#projects.find(principal, projectName);
    const limit = pageLimit(query);
    const rows = await shownEnvironments(
      this.#source.catalog,
      project.id,
      {
        ...(query.name === undefined ? {} : { name: query.name }),
        ...(query.state === undefined ? {} : { state: query.state }),
      },
      limit + 1,
      fromTimeCursor(query.cursor),
    );
    return toPage(rows, limit, toEnvironmentView, timeCursor);
  }

  /** @returns the id of the operation */
  async create(
    principal: Principal,
    projectName: string,
    body: EnvironmentToCreate,
    more: { readonly idempotency?: Idempotency },
  ): Promise<string> {
    const project = await this.#projects.find(principal, projectName);
    const engine = await this.#place(body.extensions);
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#accept(principal, project.id, engine, body, more);
      } catch (error) {
        if (!(error instanceof EnvironmentIdUsed) || tries === ID_TRIES) throw error;
      }
    }
  }

  async #place(extensions: readonly string[]): Promise<Placement> {
    const engine = await placeEnvironment(this.#source.catalog);
    if (engine === undefined)
      throw new Problem('no_engine', 'no engine is ready, or being made, to hold an environment');
    // What an engine offers is known once it is there; until then the effect itself will tell.
    const missing = engine.state === 'ready' ? extensions.filter((name) => !engine.extensions.includes(name)) : [];
    if (missing.length > 0)
      throw fieldFault(
        'extensions',
        'unknown_extension',
        `engine ${engine.name} has no ${missing.join(', ')}; it has ${engine.extensions.join(', ')}`,
      );
    return engine;
  }

  async #accept(
    principal: Principal,
    projectId: string,
    engine: Placement,
    body: EnvironmentToCreate,
    more: { readonly idempotency?: Idempotency },
  ): Promise<string> {
    const { name, profile, extensions, connectionLimit, labels } = body;
    const environmentId = randomUUID();
    const names = environmentNames(name, environmentId);
    const create = {
      operationId: randomUUID(),
      jobId: randomUUID(),
      environmentId,
      projectId,
      engine: { id: engine.id, hostId: engine.host_id },
      name,
      databaseName: names.database,
      profile,
      extensions,
      connectionLimit,
      labels,
      logins: await newLogins(this.#sealingKey(), environmentId, names),
      services: newServices(this.#sealingKey, body.services),
      requestedBy: principal,
      ...more,
    };
    const { answer, operationId } = await commit(this.#source, (tx) => acceptEnvironmentCreate(tx, create));
    this.#logger.info('operation accepted', { operationId, kind: 'environment.create', environmentId, answer });
    return operationId;
  }

  /** @returns the id of the operation */
  async remove(
    principal: Principal,
    { id: environmentId }: ShownEnvironment,
    more: { readonly idempotency?: Idempotency; readonly ifVersion?: string },
  ): Promise<string> {
    const remove = {
      operationId: randomUUID(),
      jobId: randomUUID(),
      environmentId,
      requestedBy: principal,
      ...more,
    };
    const { answer, operationId } = await commit(this.#source, (tx) => acceptEnvironmentDelete(tx, remove));
    this.#logger.info('operation accepted', { operationId, kind: 'environment.delete', environmentId, answer });
    return operationId;
  }
}
