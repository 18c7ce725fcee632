import { type CatalogSource, listRegistries, type Registry, removeRegistry, setRegistry } from '#catalog';
import { Problem } from '#kernel';
import { registryAad, seal } from '#settings';
import type { Principal } from '../access/principal.ts';
import { commit } from '../commit.ts';
import type { Page } from '../http/page.ts';
import type { RegistryToSet, RegistryView } from '../schemas/registry.ts';
import { storable } from '../schemas/text.ts';

/** What private registries ask for when a service's image is pulled. Nothing here reads a password again. */
export class Registries {
  readonly #source: CatalogSource;
  readonly #sealingKey: () => Buffer;

  constructor(source: CatalogSource, sealingKey: () => Buffer) {
    this.#source = source;
    this.#sealingKey = sealingKey;
  }

  async list(): Promise<Page<RegistryView>> {
    return { items: (await listRegistries(this.#source.catalog)).map(toRegistryView), nextCursor: null };
  }

  /** @returns `made`: nothing was known of this server before */
  async set(
    principal: Principal,
    { server, username, password }: RegistryToSet,
  ): Promise<{ view: RegistryView; made: boolean }> {
    const passwordSealed = seal(this.#sealingKey(), password, registryAad(server));
    const { made, ...row } = await commit(this.#source, (tx) =>
      setRegistry(tx, { server, username, passwordSealed, requestedBy: principal }),
    );
    return { view: toRegistryView(row), made };
  }

  /** @throws Problem `not_found` */
  async remove(principal: Principal, server: string): Promise<RegistryView> {
    const removed = storable(server)
      ? await commit(this.#source, (tx) => removeRegistry(tx, { server, requestedBy: principal }))
      : undefined;
    if (removed === undefined) throw new Problem('not_found', 'nothing is known of such a registry');
    return toRegistryView(removed);
  }
}

function toRegistryView({ server, username, created_at }: Registry): RegistryView {
  return { server, username, createdAt: created_at.toISOString() };
}
