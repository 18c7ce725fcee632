import { Problem } from '#kernel';
import type { Catalog, Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { type Idempotency, idempotencyMismatch, rememberKey } from './idempotency.ts';
import type { VisibleProjects } from './shown.ts';

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
}

/** By its name or by its id. */
export async function findProject(
  catalog: Catalog,
  nameOrId: string,
  projects: VisibleProjects,
): Promise<Project | undefined> {
  const [row] = await catalog.prepared<Project>(
    'find_project',
    /* sql */ `select id, name, created_at from projects
                where (name = $1 or id::text = $1) and ($2::uuid[] is null or id = any ($2))`,
    [nameOrId, projects],
  );
  return row;
}

export interface ProjectToCreate {
  readonly projectId: string;
  readonly name: string;
  readonly requestedBy: { readonly name: string };
  readonly idempotency?: Idempotency;
}

/**
 * @returns the id of the project: another one when the same idempotency key made it before
 * @throws Problem `project_exists`, `idempotency_mismatch`
 */
export async function createProject(tx: Tx, create: ProjectToCreate): Promise<string> {
  const { projectId, name, requestedBy, idempotency } = create;
  const remembered = await rememberKey(tx, idempotency, { projectId });
  if (remembered.answer === 'mismatch') throw idempotencyMismatch();
  if (remembered.answer === 'repeated') {
    if (remembered.projectId === null) throw idempotencyMismatch();
    return remembered.projectId;
  }
  const made = await tx.query(
    /* sql */ `insert into projects (id, name) values ($1, $2) on conflict do nothing returning id`,
    [projectId, name],
  );
  if (made.length > 0) {
    await writeAudit(tx, `key ${requestedBy.name}`, 'project.create', projectId, { name });
    return projectId;
  }
  const [holder] = await tx.query<{ id: string }>(/* sql */ `select id from projects where name = $1`, [name]);
  // This very request, repeated after a lost answer.
  if (holder?.id === projectId) return projectId;
  throw new Problem('project_exists', `there is a project ${JSON.stringify(name)}`, {
    members: holder === undefined ? {} : { projectId: holder.id },
  });
}
