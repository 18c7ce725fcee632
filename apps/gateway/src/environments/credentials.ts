import { type CatalogSource, loginsToShow, type ShownEnvironment, writeAudit } from '#catalog';
import { Problem } from '#kernel';
import type { EnvironmentState } from '#protocol';
import { loginAad, open } from '#settings';
import type { Principal } from '../access/principal.ts';
import { commit } from '../commit.ts';
import type { CredentialsView } from '../schemas/environment.ts';
import { hostUri } from './environment-view.ts';

/** In which logins work: what is shown is meant to be used. */
const SHOWN_IN: readonly EnvironmentState[] = ['ready', 'degraded', 'updating'];

export class Credentials {
  readonly #source: CatalogSource;
  readonly #sealingKey: () => Buffer;
  readonly #caFile: string;

  constructor(source: CatalogSource, sealingKey: () => Buffer, caFile: string) {
    this.#source = source;
    this.#sealingKey = sealingKey;
    this.#caFile = caFile;
  }

  /** Each look is audited before anything is shown. @throws Problem `environment_not_ready`, `environment_deleted` */
  async show(principal: Principal, environment: ShownEnvironment): Promise<CredentialsView> {
    const { id, state } = environment;
    if (state === 'deleted') throw new Problem('environment_deleted', 'its logins are gone with it');
    if (!SHOWN_IN.includes(state))
      throw new Problem('environment_not_ready', `the environment is ${state}: its logins are shown once it is ready`);
    const sealed = await commit(this.#source, async (tx) => {
      const logins = await loginsToShow(tx, id);
      await writeAudit(tx, `key ${principal.name}`, 'credentials.show', id, {});
      return logins;
    });
    const key = this.#sealingKey();
    return {
      logins: sealed.map(({ tier, user_name: user, password_sealed }) => {
        const password = open(key, password_sealed, loginAad(id, tier, 'password'));
        return { tier, user, password, uri: hostUri(environment, { user, password }, this.#caFile) };
      }),
    };
  }
}
