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
