import type { Role } from '#protocol';
import type { VisibleProjects } from '#catalog';

/** Who asks: an API key. */
export interface Principal {
  readonly keyId: string;
  readonly name: string;
  readonly role: Role;
  /** Ids; null for every project. */
  readonly projects: VisibleProjects;
}

/** What belongs to no project, as an engine's operation does, is seen by keys that see all projects. */
export function sees(principal: Principal, projectId: string | null): boolean {
  return principal.projects === null || (projectId !== null && principal.projects.includes(projectId));
}
