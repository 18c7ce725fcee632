import { randomUUID } from 'node:crypto';
import { type CatalogSource, createProject, findProject, type Idempotency, listProjects, type Project } from '#catalog';
import { Problem } from '#kernel';
import type { Principal } from '../access/principal.ts';
import { commit } from '../commit.ts';
import { fromNameCursor, nameCursor, type Page, pageLimit, toPage } from '../http/page.ts';
import type { PageQuery, ProjectView } from '../schemas/project.ts';
import { storable } from '../schemas/text.ts';

export class Projects {
  readonly #source: CatalogSource;

  constructor(source: CatalogSource) {
    this.#source = source;
  }

  /** @param nameOrId as it stands in an address. @throws Problem `not_found`, also for one that the caller may not see */
  async find(principal: Principal, nameOrId: string): Promise<Project> {
    const project = storable(nameOrId)
      ? await findProject(this.#source.catalog, nameOrId, principal.projects)
      : undefined;
    if (project === undefined) throw new Problem('not_found', 'there is no such project');
    return project;
  }

  async list(principal: Principal, query: PageQuery): Promise<Page<ProjectView>> {
    const limit = pageLimit(query);
    const rows = await listProjects(this.#source, principal.projects, limit + 1, fromNameCursor(query.cursor));
    return toPage(
      rows,
      limit,
      ({ id, name, createdAt }) => ({ id, name, createdAt: createdAt.toISOString() }),
      nameCursor,
    );
  }

  async create(principal: Principal, name: string, more: { readonly idempotency?: Idempotency }): Promise<ProjectView> {
    // A key that sees some projects would make one that it cannot see.
    if (principal.projects !== null)
      throw new Problem('forbidden', 'a key that is limited to projects cannot make another one');
    const projectId = randomUUID();
    const id = await commit(this.#source, (tx) =>
      createProject(tx, { projectId, name, requestedBy: principal, ...more }),
    );
    return toProjectView(await this.find(principal, id));
  }
}

export function toProjectView(project: Project): ProjectView {
  return { id: project.id, name: project.name, createdAt: project.created_at.toISOString() };
}
