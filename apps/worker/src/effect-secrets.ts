/**
 * Secrets of one effect: read still sealed with the boundary that records it, so that the act waits for nothing, and opened
 * only for as long as the effect takes.
 */
import { readFileSync } from 'node:fs';
import type { LoginRow, OperationInFull, Tx } from '#catalog';
import { loadLogins, loadRegistry, loadServiceSecrets } from '#catalog';
import type { EffectSecrets } from '#effects';
import { connectionUri, type Tier } from '#kernel';
import type { PlannedEffect } from '#protocol';
import {
  CA_FILE,
  DATABASE_URL_FILE,
  effectTraits,
  ENGINE_ALIAS,
  ENGINE_PORT,
  registryOf,
  SERVICE_FOLDER,
} from '#protocol';
import type { Settings } from '#settings';
import { loginAad, open, registryAad, SealBroken, serviceSecretAad } from '#settings';

export interface Sealed {
  readonly logins: readonly LoginRow[];
  readonly files: readonly { readonly name: string; readonly sealed: Buffer }[];
  readonly registry: { readonly username: string; readonly password_sealed: Buffer } | undefined;
}

const NONE: Sealed = { logins: [], files: [], registry: undefined };

export async function loadSealed(tx: Tx, planned: PlannedEffect, { environment }: OperationInFull): Promise<Sealed> {
  const { needs } = effectTraits(planned.kind);
  if (needs === 'registry' && planned.kind === 'image')
    return { ...NONE, registry: await loadRegistry(tx, registryOf(planned.spec.image)) };
  if (needs === undefined || environment === undefined) return NONE;
  const [logins, files] = await Promise.all([
    loadLogins(tx, environment.id),
    'serviceId' in planned.spec && planned.spec.serviceId !== undefined
      ? loadServiceSecrets(tx, planned.spec.serviceId)
      : [],
  ]);
  return { ...NONE, logins, files };
}

/** @returns undefined when one is missing, or was sealed with another key */
export function openSealed(
  sealingKey: Buffer,
  { paths }: Pick<Settings, 'paths'>,
  recorded: { readonly planned: PlannedEffect; readonly full: OperationInFull; readonly sealed: Sealed },
): EffectSecrets | undefined {
  const { planned, full, sealed } = recorded;
  const { environment } = full;
  const { needs } = effectTraits(planned.kind);
  try {
    switch (needs) {
      case undefined:
        return {};
      case 'registry':
        return openRegistry(sealingKey, planned, sealed);
      case 'password':
        return environment === undefined
          ? {}
          : { passwords: openLogins(sealingKey, environment.id, 'password', sealed) };
      case 'verifier':
        return environment === undefined
          ? {}
          : { verifiers: openLogins(sealingKey, environment.id, 'verifier', sealed) };
      case 'service-files':
        return environment === undefined || !('serviceId' in planned.spec) || planned.spec.serviceId === undefined
          ? {}
          : { files: serviceFiles(sealingKey, paths.caFile, environment, planned.spec.serviceId, sealed) };
      default:
        return needs satisfies never;
    }
  } catch (error) {
    if (error instanceof SealBroken) return undefined;
    throw error;
  }
}

function openRegistry(sealingKey: Buffer, planned: PlannedEffect, { registry }: Sealed): EffectSecrets {
  if (registry === undefined || planned.kind !== 'image') return {};
  const { username, password_sealed } = registry;
  const password = open(sealingKey, password_sealed, registryAad(registryOf(planned.spec.image)));
  return { registry: { username, password } };
}

function openLogins(
  sealingKey: Buffer,
  environmentId: string,
  what: 'password' | 'verifier',
  sealed: Sealed,
): Readonly<Record<Tier, string>> {
  const opened = (tier: Tier): string => openLogin(sealingKey, environmentId, tier, what, sealed);
  return { migrate: opened('migrate'), app: opened('app'), readonly: opened('readonly') };
}

function openLogin(
  sealingKey: Buffer,
  environmentId: string,
  tier: Tier,
  what: 'password' | 'verifier',
  { logins }: Sealed,
): string {
  const login = logins.find((candidate) => candidate.tier === tier);
  const value = what === 'password' ? login?.password_sealed : login?.verifier_sealed;
  const aad = loginAad(environmentId, tier, what);
  // The columns are emptied with the environment, so null is possible whatever the row's type says of a living one.
  if (!(value instanceof Uint8Array)) throw new SealBroken(aad);
  return open(sealingKey, value, aad);
}

/** What a service finds in its folder. It connects as `app`: what it makes in the schema comes by migrations. */
function serviceFiles(
  sealingKey: Buffer,
  caFile: string,
  environment: NonNullable<OperationInFull['environment']>,
  serviceId: string,
  sealed: Sealed,
): Readonly<Record<string, string>> {
  const login = sealed.logins.find(({ tier }) => tier === 'app');
  const uri = connectionUri({
    host: ENGINE_ALIAS,
    port: ENGINE_PORT,
    database: environment.database_name,
    user: login?.user_name ?? '',
    password: openLogin(sealingKey, environment.id, 'app', 'password', sealed),
    sslRootCert: `${SERVICE_FOLDER}/${CA_FILE}`,
  });
  const own = sealed.files.map(
    ({ name, sealed: value }) => [name, open(sealingKey, value, serviceSecretAad(serviceId, name))] as const,
  );
  return { ...Object.fromEntries(own), [DATABASE_URL_FILE]: uri, [CA_FILE]: readFileSync(caFile, 'utf8') };
}
