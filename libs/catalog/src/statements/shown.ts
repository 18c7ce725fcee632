/**
 * What the API shows. No statement here names a sealed column, but for the one that says so (FIELD-CASES B112). Lists take
 * the projects that the asking key may see, null for all of them; a row that is read by its id says its project.
 */
import type { EffectOutcome, JsonObject, Reason, Tier } from '#kernel';
import type {
  EffectKind,
  EngineState,
  EnvironmentState,
  OperationKind,
  OperationState,
  ServiceIdentities,
  ServiceSpec,
} from '#protocol';
import type { Catalog, Tx } from '../catalog.ts';
import type { ServiceObservation } from '../rows.ts';

export type VisibleProjects = readonly string[] | null;

/** Where a page begins: after the row with this time and id. */
export interface PageStart {
  /** As PostgreSQL wrote it, with microseconds. */
  readonly at: string;
  readonly id: string;
}

export interface ShownEnvironment {
  readonly id: string;
  readonly project_id: string;
  readonly project: string;
  readonly name: string;
  readonly state: EnvironmentState;
  readonly engine: string;
  readonly host: string;
  readonly port: number;
  readonly profile: string;
  readonly extensions: readonly string[];
  readonly connection_limit: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly database_name: string;
  readonly reason: Reason | null;
  /** In the order that they were asked for in. */
  readonly services: readonly ShownService[];
  readonly created_at: Date;
  readonly last_observed_at: Date | null;
  /** Changes with every write to the row. */
  readonly version: string;
  readonly page_at: string;
}

export interface ShownService {
  readonly name: string;
  readonly image: string;
  readonly spec: ServiceSpec;
  /** Where its ports are published: said when its container was made, and by the host before that. */
  readonly address: string;
  /** Of its container; null while there is none. */
  readonly identities: ServiceIdentities | null;
  readonly secret_names: readonly string[];
  readonly observed: ServiceObservation | null;
  readonly observed_at: Date | null;
}

/**
 * A statement of its own, for environments that have some: joined to the others it would cost every read of an environment
 * a third more, also of those without.
 */
const SERVICES = /* sql */ `
  select s.environment_id, s.name, s.image, s.spec,
         coalesce((select e.spec #>> '{published,address}'
                     from operations o join effects e on e.operation_id = o.id
                    where o.environment_id = v.id and e.kind = 'container' and e.outcome = 'applied' and e.spec ->> 'serviceId' = s.id::text
                    limit 1), h.service_address) as address,
         v.identities -> 'services' -> s.id::text as identities,
         coalesce((select json_agg(x.name order by x.name) from service_secrets x where x.service_id = s.id), '[]') as secret_names,
         s.observed, s.observed_at
    from services s
    join environments v on v.id = s.environment_id
    join engines g on g.id = v.engine_id
    join hosts h on h.id = g.host_id
   where s.environment_id = any ($1::uuid[])
   order by s.ordinal`;

type WithNetworks = Omit<ShownEnvironment, 'services'> & { readonly networks: number };

async function withServices(
  catalog: Catalog,
  environments: readonly WithNetworks[],
): Promise<readonly ShownEnvironment[]> {
  const ids = environments.filter(({ networks }) => networks > 0).map(({ id }) => id);
  const services =
    ids.length === 0
      ? []
      : await catalog.prepared<ShownService & { readonly environment_id: string }>('shown_services', SERVICES, [ids]);
  const byEnvironment = Map.groupBy(services, (service) => service.environment_id);
  return environments.map((environment) => ({ ...environment, services: byEnvironment.get(environment.id) ?? [] }));
}

const ENVIRONMENT = /* sql */ `
  select v.id, v.project_id, p.name as project, v.name, v.state, g.name as engine, g.host_id as host, g.port, v.profile, v.extensions,
         v.connection_limit, v.labels, v.database_name, v.networks, v.reason, v.created_at, v.last_observed_at, v.xmin::text as version,
         v.created_at::text as page_at
    from environments v
    join projects p on p.id = v.project_id
    join engines g on g.id = v.engine_id`;

export async function environmentsById(catalog: Catalog, ids: readonly string[]): Promise<readonly ShownEnvironment[]> {
  const rows = await catalog.prepared<WithNetworks>(
    'environments_by_id',
    /* sql */ `${ENVIRONMENT} where v.id = any ($1::uuid[])`,
    [ids],
  );
  return withServices(catalog, rows);
}

/** Oldest first. A deleted environment is in no list. */
export async function shownEnvironments(
  catalog: Catalog,
  projectId: string,
  filter: { readonly name?: string; readonly state?: EnvironmentState },
  limit: number,
  after: PageStart | undefined,
): Promise<readonly ShownEnvironment[]> {
  const rows = await catalog.prepared<WithNetworks>(
    'shown_environments',
    /* sql */ `${ENVIRONMENT}
      where v.project_id = $1 and v.state <> 'deleted' and ($2::text is null or v.name = $2) and ($6::text is null or v.state = $6)
        and ($3::timestamptz is null or (v.created_at, v.id) > ($3, $4::uuid))
      order by v.created_at, v.id limit $5`,
    [projectId, filter.name ?? null, after?.at ?? null, after?.id ?? null, limit, filter.state ?? null],
  );
  return withServices(catalog, rows);
}

export interface ShownOperation {
  readonly id: string;
  readonly project_id: string | null;
  readonly kind: OperationKind;
  readonly environment_id: string | null;
  readonly environment: string | null;
  readonly state: OperationState;
  readonly stage: string;
  readonly attempt: number;
  readonly effects: readonly ShownEffect[];
  readonly reason: Reason | null;
  readonly waiting_for: string | null;
  readonly progress: string | null;
  readonly case_id: string | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
  readonly page_at: string;
}

export interface ShownEffect {
  readonly kind: EffectKind;
  /** Name of the service that it is about. */
  readonly service: string | null;
  readonly outcome: EffectOutcome;
  readonly started: number;
  readonly settled: number | null;
}

const OPERATION = /* sql */ `
  select o.id, o.project_id, o.kind, o.environment_id,
         (select v.name from environments v where v.id = o.environment_id) as environment, o.state, o.stage, o.attempt, o.reason, o.waiting_for, o.progress, o.created_at,
         o.finished_at,
         o.created_at::text as page_at,
         case when o.state = 'blocked' then
           (select c.id from cases c where c.operation_id = o.id and c.closed_at is null limit 1) end as case_id,
         coalesce((select json_agg(json_build_object('kind', e.kind, 'outcome', e.outcome,
                            'service', case when e.spec ? 'serviceId' then
                              (select s.name from services s where s.id = (e.spec ->> 'serviceId')::uuid) end,
                            'started', extract(epoch from e.started_at) * 1000, 'settled', extract(epoch from e.settled_at) * 1000)
                          order by e.ordinal)
                     from effects e where e.operation_id = o.id), '[]') as effects
    from operations o`;

export async function operationsById(catalog: Catalog, ids: readonly string[]): Promise<readonly ShownOperation[]> {
  return catalog.prepared<ShownOperation>('operations_by_id', /* sql */ `${OPERATION} where o.id = any ($1::uuid[])`, [
    ids,
  ]);
}

export interface OperationFilter {
  readonly environment?: string;
  readonly state?: OperationState;
  readonly kind?: OperationKind;
}

/** Newest first. */
export async function shownOperations(
  catalog: Catalog,
  filter: OperationFilter,
  projects: VisibleProjects,
  limit: number,
  after: PageStart | undefined,
): Promise<readonly ShownOperation[]> {
  return catalog.query<ShownOperation>(
    /* sql */ `${OPERATION}
      where ($1::uuid is null or o.environment_id = $1) and ($2::uuid[] is null or o.project_id = any ($2))
        and ($3::text is null or o.state = $3) and ($4::text is null or o.kind = $4)
        and ($5::timestamptz is null or (o.created_at, o.id) < ($5, $6::uuid))
      order by o.created_at desc, o.id desc limit $7`,
    [
      filter.environment ?? null,
      projects,
      filter.state ?? null,
      filter.kind ?? null,
      after?.at ?? null,
      after?.id ?? null,
      limit,
    ],
  );
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly project_ids: readonly string[] | null;
}

/** @param hash SHA-256 of the key */
export async function findApiKey(catalog: Catalog, hash: Buffer): Promise<ApiKey | undefined> {
  const [row] = await catalog.prepared<ApiKey>(
    'find_api_key',
    /* sql */ `select id, name, role, project_ids from api_keys where key_hash = $1 and revoked_at is null`,
    [hash],
  );
  return row;
}

export interface Placement {
  readonly id: string;
  readonly name: string;
  readonly host_id: string;
  readonly state: EngineState;
  readonly extensions: readonly string[];
}

/** The engine that takes a new environment: a ready one, else one that is being made. */
export async function placeEnvironment(catalog: Catalog): Promise<Placement | undefined> {
  const [row] = await catalog.prepared<Placement>(
    'place_environment',
    /* sql */ `select id, name, host_id, state, extensions from engines where state in ('ready', 'creating')
                order by state = 'ready' desc, created_at, id limit 1`,
    [],
  );
  return row;
}

export interface SealedLogin {
  readonly tier: Tier;
  readonly user_name: string;
  readonly password_sealed: Buffer;
}

/** The one statement for the API that reads a sealed password; its transaction also audits the look. */
export async function loginsToShow(tx: Tx, environmentId: string): Promise<readonly SealedLogin[]> {
  return tx.query<SealedLogin>(
    /* sql */ `select tier, user_name, password_sealed from logins
                where environment_id = $1 and password_sealed is not null
                order by array_position(array['migrate', 'app', 'readonly'], tier)`,
    [environmentId],
  );
}

export interface ShownCase {
  readonly id: string;
  readonly kind: string;
  readonly host: string;
  readonly engine_id: string | null;
  readonly environment_id: string | null;
  readonly operation_id: string | null;
  readonly effect_id: string | null;
  readonly reason: Reason;
  readonly evidence: JsonObject;
  readonly opened_at: Date;
  readonly closed_at: Date | null;
  readonly page_at: string;
}

const CASE = /* sql */ `
  select c.id, c.kind, c.host_id as host, c.engine_id, c.environment_id, c.operation_id, c.effect_id, c.reason, c.evidence,
         c.opened_at, c.closed_at, c.opened_at::text as page_at
    from cases c`;

/** Newest first. @param open undefined for open and closed ones */
export async function shownCases(
  catalog: Catalog,
  open: boolean | undefined,
  limit: number,
  after: PageStart | undefined,
): Promise<readonly ShownCase[]> {
  return catalog.query<ShownCase>(
    /* sql */ `${CASE}
      where ($1::boolean is null or (c.closed_at is null) = $1)
        and ($2::timestamptz is null or (c.opened_at, c.id) < ($2, $3::uuid))
      order by c.opened_at desc, c.id desc limit $4`,
    [open ?? null, after?.at ?? null, after?.id ?? null, limit],
  );
}

export async function shownCase(catalog: Catalog, id: string): Promise<ShownCase | undefined> {
  const [row] = await catalog.query<ShownCase>(/* sql */ `${CASE} where c.id = $1`, [id]);
  return row;
}

export interface Backlog {
  readonly operations: readonly {
    readonly state: OperationState;
    readonly kind: OperationKind;
    readonly count: number;
  }[];
  readonly outbox: number;
  readonly cases: number;
  /** Those whose names are taken. */
  readonly environments: readonly { readonly state: EnvironmentState; readonly count: number }[];
}

/**
 * Counts for /metrics; all from partial indexes of what is open. That of environments is by far the largest: 10,000 living ones
 * among 100,000 take 20 ms.
 */
export async function backlog(catalog: Catalog): Promise<Backlog> {
  const [row] = await catalog.query<Backlog>(/* sql */ `select
      coalesce((select json_agg(o) from (
        select state, kind, count(*) as count from operations where state in ('queued', 'running', 'blocked') group by 1, 2) o), '[]') as operations,
      (select count(*)::integer from outbox where published_at is null) as outbox,
      (select count(*)::integer from cases where closed_at is null) as cases,
      coalesce((select json_agg(v) from (
        select state, count(*) as count from environments where state not in ('deleted', 'failed') group by 1) v), '[]') as environments`);
  return row ?? { operations: [], outbox: 0, cases: 0, environments: [] };
}
