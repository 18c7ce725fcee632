/** Lists that are read through the entities: short, rarely asked for, and without a column that is secret. */
import { In, MoreThan } from 'typeorm';
import type { CatalogSource } from './data-source.ts';
import { EngineEntity } from './entities/engine.ts';
import { ProjectEntity } from './entities/project.ts';
import type { VisibleProjects } from './statements/shown.ts';

/** By name. @param after the last name of the page before */
export async function listProjects(
  source: CatalogSource,
  projects: VisibleProjects,
  limit: number,
  after: string | undefined,
): Promise<readonly ProjectEntity[]> {
  return source.read((entities) =>
    entities.find(ProjectEntity, {
      where: {
        ...(projects === null ? {} : { id: In([...projects]) }),
        ...(after === undefined ? {} : { name: MoreThan(after) }),
      },
      order: { name: 'asc' },
      take: limit,
    }),
  );
}

/** All of them, with the pins they have had, newest generation first. */
export async function listEngines(source: CatalogSource): Promise<readonly EngineEntity[]> {
  return source.read((entities) =>
    entities.find(EngineEntity, {
      relations: { generations: true },
      order: { createdAt: 'asc', id: 'asc', generations: { generation: 'desc' } },
    }),
  );
}

export async function findEngine(source: CatalogSource, id: string): Promise<EngineEntity | null> {
  return source.read((entities) =>
    entities.findOne(EngineEntity, {
      where: { id },
      relations: { generations: true },
      order: { generations: { generation: 'desc' } },
    }),
  );
}
