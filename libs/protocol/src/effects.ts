/**
 * Every effect kind, its class, its specification and what it leaves behind (DESIGN §5).
 *
 * A specification holds no secret: it is stored in the catalog. A new kind is one entry in `EFFECTS`, one in
 * `EffectSpecs`, and one folder in libs/effects.
 */
import type { EnvironmentNames, JsonObject } from '#kernel';
import type { HealthCheck, ServiceIdentities, ServiceLimits, ServicePlace } from './services.ts';

/** Numbers are PostgreSQL OIDs. */
export interface RoleOids {
  readonly owner: number;
  readonly door: number;
  readonly migrate: number;
  readonly app: number;
  readonly readonly: number;
}

export interface EffectSpecs {
  /** Owner, door and three logins, with limits, marks and memberships; one transaction. */
  roles: { readonly environmentId: string; readonly names: EnvironmentNames; readonly connectionLimit: number };
  /** CREATE DATABASE under the attempt's name. */
  database: { readonly environmentId: string };
  /** Schemas, extensions, default privileges inside the unpublished database. */
  interior: {
    readonly environmentId: string;
    readonly databaseOid: number;
    readonly names: EnvironmentNames;
    readonly extensions: readonly string[];
  };
  /** Final name, rights and limit, in one transaction of the control database. */
  'publish-database': {
    readonly environmentId: string;
    readonly databaseOid: number;
    readonly names: EnvironmentNames;
    readonly connectionLimit: number;
  };
  /** Membership of the door role in the profiles' group roles. */
  rules: { readonly environmentId: string; readonly names: EnvironmentNames; readonly profiles: readonly string[] };
  /** Real logins, tier by tier, and logins that must be refused. */
  probe: {
    readonly environmentId: string;
    readonly databaseOid: number;
    readonly names: EnvironmentNames;
    readonly refusedDatabases: readonly string[];
  };
  /** Withdraw access and rename the database to a tombstone name; one transaction. */
  'retire-database': {
    readonly environmentId: string;
    readonly databaseOid: number;
    readonly names: EnvironmentNames;
    readonly profiles: readonly string[];
  };
  'drop-database': { readonly environmentId: string; readonly databaseOid: number };
  /** In other databases: what the roles own goes to a role without rights, what they were granted is revoked. */
  disown: { readonly environmentId: string; readonly roleOids: RoleOids; readonly databaseOids: readonly number[] };
  'drop-roles': { readonly environmentId: string; readonly roleOids: RoleOids };

  /** The engine joins an environment's network, as `db`. */
  'join-network': { readonly environmentId: string; readonly networkId: string; readonly engineContainerId: string };
  'leave-network': { readonly environmentId: string; readonly networkId: string; readonly engineContainerId: string };
  /** A second network for services with published ports: an environment's own has no way to the host at all. */
  'port-network': { readonly environmentId: string; readonly pool: string };
  'remove-port-network': { readonly environmentId: string; readonly networkId: string };
  /** One service's container, with its mounts and networks, created and not started. Its restart policy is `no`. */
  container: ServiceOf & {
    readonly name: string;
    /** Image id (`sha256:…`): from here on the tag no longer counts. */
    readonly imageId: string;
    readonly networkId: string;
    /** Where published ports are, and out of which; left out when it has none. */
    readonly published?: ServicePlace & { readonly networkId: string; readonly containerPorts: readonly number[] };
    readonly command: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly limits: ServiceLimits;
    readonly readOnly: boolean;
    readonly user?: string;
  };
  /** Files of the never started container: connection string, authority, secrets; 0400, its user's own. */
  secrets: ServiceOf & { readonly containerId: string };
  /** Once; `again` for one that was stopped with its host: then also a container that has run before. */
  start: ServiceOf & { readonly containerId: string; readonly again?: true };
  /** Waits until the service is well, or cannot become so any more. Seen from where the engine is, in the same network. */
  healthy: ServiceOf & {
    readonly containerId: string;
    readonly networkId: string;
    readonly health: HealthCheck;
    readonly engineContainerId: string;
  };
  /** From here on the daemon starts it again when it ends. */
  'publish-service': ServiceOf & { readonly containerId: string };
  'remove-service': ServiceOf & { readonly containerId: string };

  /** The group role of a network profile, in an engine that was made without it. */
  'profile-role': { readonly engineId: string; readonly profile: string };
  /** The folder that the engine reads: configuration, rule generation 0, certificate, entrypoint. */
  'engine-files': { readonly engineId: string; readonly name: string };
  /** Present on the host, by its id. For an engine, or for the service that is named. */
  image: { readonly image: string; readonly serviceId?: string };
  /** An engine's own, or an environment's, which is internal: it leads nowhere else. */
  network: { readonly owner: NetworkOwner; readonly pool: string };
  volume: { readonly engineId: string };
  'engine-container': {
    readonly engineId: string;
    readonly name: string;
    /** Image id (`sha256:…`): from here on the tag no longer counts. */
    readonly imageId: string;
    readonly networkId: string;
    readonly volumeName: string;
    /** The loopback port the engine is published on. */
    readonly port: number;
  };
  'engine-start': { readonly engineId: string; readonly containerId: string };
  /** The real server answers as the administrator; what it says becomes the pin. */
  'engine-ready': { readonly engineId: string; readonly containerId: string };
  /** One whole generated rule file, put in force and proven. */
  'rule-file': {
    readonly engineId: string;
    readonly generation: number;
    readonly profiles: readonly { readonly name: string; readonly cidrs: readonly string[] }[];
    readonly port: number;
    /** SHA-256 of the file that this one replaces; left out for generation 0, whose content the engine's id decides. */
    readonly previousDigest?: string;
  };
  'remove-container': { readonly engineId: string; readonly containerId: string };
  'remove-volume': { readonly engineId: string; readonly volumeName: string };
  'remove-network': { readonly owner: NetworkOwner; readonly networkId: string };
  /** The engine's folder on the host, with password, key and certificate. */
  'remove-engine-files': { readonly engineId: string };
}

interface ServiceOf {
  readonly environmentId: string;
  readonly serviceId: string;
}

/** Whose a network is: part of its mark. */
export interface NetworkOwner {
  readonly type: 'engine' | 'environment';
  readonly id: string;
}

export type EffectKind = keyof EffectSpecs;

/** DESIGN §5, first table. */
export type EffectClass =
  'transactional-sql' | 'exclusive-name' | 'compare-and-swap' | 'removal' | 'start-stop' | 'harmless';

interface EffectTraits {
  readonly class: EffectClass;
  /** Milliseconds from the start of the act until the guardian kills it; the default is EFFECT_DEADLINE_MS. */
  readonly deadlineMs?: number;
  /** Whose settled effects no longer stand once this one is applied. */
  readonly undoes?: readonly EffectKind[];
  /** Registers its token in the engine, and so leaves its claim's number there. */
  readonly registers?: true;
  /**
   * Secrets that the act has to be told: of each login, a service's files, what a registry asks for. An act that shows what
   * a service said last needs its files too, to keep them out of it.
   */
  readonly needs?: 'password' | 'verifier' | 'service-files' | 'registry';
}

export const EFFECTS = {
  roles: { class: 'transactional-sql', registers: true, needs: 'verifier' },
  database: { class: 'exclusive-name', registers: true },
  interior: { class: 'transactional-sql', registers: true },
  'publish-database': { class: 'transactional-sql', registers: true },
  rules: { class: 'transactional-sql', registers: true },
  probe: { class: 'harmless', needs: 'password' },
  'retire-database': { class: 'transactional-sql', registers: true, undoes: ['publish-database'] },
  'drop-database': { class: 'removal', registers: true, undoes: ['database', 'interior', 'publish-database'] },
  disown: { class: 'removal', registers: true },
  'drop-roles': { class: 'transactional-sql', registers: true, undoes: ['roles', 'rules'] },
  'engine-files': { class: 'compare-and-swap' },
  'join-network': { class: 'start-stop' },
  'leave-network': { class: 'removal', undoes: ['join-network'] },
  'port-network': { class: 'exclusive-name' },
  'remove-port-network': { class: 'removal', undoes: ['port-network'] },
  container: { class: 'exclusive-name' },
  secrets: { class: 'start-stop', needs: 'service-files' },
  start: { class: 'start-stop', needs: 'service-files' },
  healthy: { class: 'harmless', deadlineMs: 600_000, needs: 'service-files' },
  'publish-service': { class: 'start-stop' },
  'remove-service': { class: 'removal', undoes: ['container', 'secrets', 'start', 'healthy', 'publish-service'] },
  'profile-role': { class: 'transactional-sql', registers: true },
  image: { class: 'harmless', deadlineMs: 600_000, needs: 'registry' },
  network: { class: 'exclusive-name' },
  volume: { class: 'exclusive-name' },
  'engine-container': { class: 'exclusive-name' },
  'engine-start': { class: 'start-stop' },
  'engine-ready': { class: 'harmless' },
  'rule-file': { class: 'compare-and-swap' },
  'remove-container': {
    class: 'removal',
    undoes: ['engine-container', 'engine-start', 'engine-ready', 'profile-role', 'rule-file'],
  },
  'remove-volume': { class: 'removal', undoes: ['volume'] },
  'remove-network': { class: 'removal', undoes: ['network'] },
  'remove-engine-files': { class: 'removal', undoes: ['engine-files'] },
} as const satisfies Record<EffectKind, EffectTraits>;

export function effectTraits(kind: EffectKind): EffectTraits {
  return EFFECTS[kind];
}

/** Kinds whose settled effects prove that the engine has seen their claims' numbers. */
export function registeringEffects(): readonly EffectKind[] {
  return Object.keys(EFFECTS).filter(
    (kind): kind is EffectKind => isEffectKind(kind) && effectTraits(kind).registers === true,
  );
}

export function isEffectKind(text: string): text is EffectKind {
  return Object.hasOwn(EFFECTS, text);
}

/** The next thing to do for an operation, with everything its act needs to know except secrets and places. */
export type PlannedEffect = {
  readonly [K in EffectKind]: { readonly kind: K; readonly spec: EffectSpecs[K] };
}[EffectKind];

export function planned<K extends EffectKind>(kind: K, spec: EffectSpecs[K]): PlannedEffect {
  // The union over K is exactly this pair; TypeScript does not correlate the two members by itself.
  return { kind, spec } as unknown as PlannedEffect;
}

/** What settled effects left behind, kept with the environment or engine: the only thing a removal goes by. */
export interface Identities {
  readonly roleOids?: RoleOids;
  readonly databaseOid?: number;
  /** The database has its tombstone name and no access. */
  readonly retired?: boolean;
  readonly imageId?: string;
  readonly networkId?: string;
  readonly volumeName?: string;
  readonly containerId?: string;
  /** Addresses from which the host itself reaches the engine, as the engine sees them. */
  readonly localCidrs?: readonly string[];
  /** The engine may be in the environment's network: from when there is one, since a join that nobody saw end may come late. */
  readonly engineMayBeIn?: boolean;
  readonly portNetworkId?: string;
  /** By the service's id; a service without a container is not in it. */
  readonly services?: Readonly<Record<string, ServiceIdentities>>;
}

/** Facts that an applied effect reports; each kind's keys are listed where `identitiesAfter` reads them. */
export type EffectFacts = JsonObject;

/** Identities after an effect was settled as applied: what came is added, what went is taken away. */
export function identitiesAfter(before: Identities, kind: EffectKind, facts: EffectFacts): Identities {
  switch (kind) {
    case 'roles':
      return { ...before, roleOids: facts['roleOids'] as unknown as RoleOids };
    case 'database':
      return { ...before, databaseOid: facts['databaseOid'] as number };
    case 'retire-database':
      return { ...before, retired: true };
    case 'drop-database': {
      const { databaseOid: _gone, retired: _too, ...rest } = before;
      return rest;
    }
    case 'drop-roles': {
      const { roleOids: _gone, ...rest } = before;
      return rest;
    }
    case 'image':
      // A service's is read from the effect itself: an image is shared, and nobody's to remove.
      return 'serviceId' in facts ? before : { ...before, imageId: facts['imageId'] as string };
    case 'network':
      return {
        ...before,
        networkId: facts['networkId'] as string,
        ...('localCidrs' in facts ? { localCidrs: facts['localCidrs'] as readonly string[] } : { engineMayBeIn: true }),
      };
    case 'leave-network': {
      const { engineMayBeIn: _gone, ...rest } = before;
      return rest;
    }
    case 'port-network':
      return { ...before, portNetworkId: facts['networkId'] as string };
    case 'remove-port-network': {
      const { portNetworkId: _gone, ...rest } = before;
      return rest;
    }
    case 'container': {
      const { serviceId, ...service } = facts as unknown as ServiceIdentities & { readonly serviceId: string };
      return { ...before, services: { ...before.services, [serviceId]: service } };
    }
    case 'remove-service': {
      const { services = {}, ...rest } = before;
      const left = Object.fromEntries(Object.entries(services).filter(([id]) => id !== facts['serviceId']));
      return Object.keys(left).length === 0 ? rest : { ...rest, services: left };
    }
    case 'volume':
      return { ...before, volumeName: facts['volumeName'] as string };
    case 'engine-container':
      return { ...before, containerId: facts['containerId'] as string };
    case 'remove-container': {
      const { containerId: _gone, ...rest } = before;
      return rest;
    }
    case 'remove-volume': {
      const { volumeName: _gone, ...rest } = before;
      return rest;
    }
    case 'remove-network': {
      const { networkId: _gone, localCidrs: _too, ...rest } = before;
      return rest;
    }
    case 'interior':
    case 'publish-database':
    case 'rules':
    case 'probe':
    case 'disown':
    case 'join-network':
    case 'secrets':
    case 'start':
    case 'healthy':
    case 'publish-service':
    case 'profile-role':
    case 'engine-files':
    case 'engine-start':
    case 'engine-ready':
    case 'rule-file':
    case 'remove-engine-files':
      return before;
    default:
      return kind satisfies never;
  }
}
