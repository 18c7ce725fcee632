/** Everything the plan of an operation goes by, in one read. */
import { environmentNames } from '#kernel';
import type { EffectRecord, EnvironmentSubject, Service, ServicePlace, Situation } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { EffectRow, EngineRow, EnvironmentRow, LoginRow, OperationRow, ServiceRow } from '../rows.ts';

export interface OperationInFull {
  readonly operation: OperationRow;
  readonly engine: EngineRow;
  readonly environment: EnvironmentRow | undefined;
  readonly effects: readonly EffectRow[];
  readonly services: readonly Service[];
  readonly situation: Situation;
}

/** An engine as `EngineRow`, with the pin of its present generation. */
export const ENGINE = /* sql */ `
  select e.*, (select pin from engine_generations p where p.engine_id = e.id and p.generation = e.generation) as pin
    from engines e`;

const LOAD = /* sql */ `
  select row_to_json(o) as operation,
         (select row_to_json(g) from (${ENGINE} where e.id = o.engine_id) g) as engine,
         (select row_to_json(v) from environments v where v.id = o.environment_id) as environment,
         coalesce((select json_agg(row_to_json(f) order by f.ordinal) from (
            select e.*, t.token from effects e join tokens t on t.effect_id = e.id where e.operation_id = o.id) f), '[]') as effects,
         (select n.database_name from environments n
           where n.engine_id = o.engine_id and n.state = 'ready' and n.id is distinct from o.environment_id limit 1) as neighbour,
         (select row_to_json(r) from rule_generations r join engines e on e.id = r.engine_id and e.rule_generation = r.generation
           where r.engine_id = o.engine_id) as rules,
         coalesce((select json_agg(row_to_json(s) order by s.ordinal) from (
            select s.id, s.name, s.image, s.spec, s.ordinal,
                   coalesce((select json_agg(x.name order by x.name) from service_secrets x where x.service_id = s.id), '[]') as secret_names
              from services s where s.environment_id = o.environment_id) s), '[]') as services,
         case when exists (select 1 from environments v where v.id = o.environment_id and v.networks > 1) then (
            select json_build_object('address', h.service_address, 'from', lower(h.service_ports), 'to', upper(h.service_ports) - 1,
                     'taken', coalesce((
                       select json_agg(p.value::integer)
                         from environments v join engines g on g.id = v.engine_id and g.host_id = h.id
                         cross join jsonb_each(coalesce(v.identities -> 'services', '{}')) s
                         cross join jsonb_each_text(s.value -> 'ports') p
                        where v.networks > 0 and v.state not in ('deleted', 'failed')), '[]'))
              from hosts h where h.id = o.host_id and h.service_ports is not null) end as published
    from operations o where o.id = $1`;

interface Loaded {
  readonly operation: OperationRow;
  readonly engine: EngineRow;
  readonly environment: EnvironmentRow | null;
  readonly effects: readonly EffectRow[];
  readonly neighbour: string | null;
  readonly rules: { readonly generation: number; readonly digest: string } | null;
  readonly services: readonly (ServiceRow & { readonly secret_names: readonly string[] })[];
  readonly published: {
    readonly address: string;
    readonly from: number;
    readonly to: number;
    readonly taken: readonly number[];
  } | null;
}

/** Databases that no login of an environment may reach, on any engine. */
const NEVER_REACHED = ['postgres', 'template1', 'surefoot_control'];

export async function loadOperation(tx: Tx, operationId: string): Promise<OperationInFull> {
  const [row] = await tx.query<Loaded>(LOAD, [operationId]);
  if (row === undefined) throw new TypeError(`the catalog has no operation ${operationId}`);
  const { operation, engine, effects } = row;
  const environment = row.environment ?? undefined;
  const services = row.services.map(toService);
  const subject: Situation['subject'] =
    environment === undefined
      ? {
          type: 'engine',
          id: engine.id,
          name: engine.name,
          image: engine.image,
          port: engine.port,
          networkPool: engine.network_pool,
          identities: engine.identities,
          ...(row.rules === null ? {} : { rules: row.rules }),
        }
      : {
          type: 'environment',
          id: environment.id,
          names: environmentNames(environment.name, environment.id),
          extensions: environment.extensions,
          connectionLimit: environment.connection_limit,
          profile: environment.profile,
          refusedDatabases: row.neighbour === null ? NEVER_REACHED : [...NEVER_REACHED, row.neighbour],
          identities: environment.identities,
          services,
          place: placeOf(row),
        };
  const situation: Situation = {
    subject,
    effects: effects.map(toRecord),
    cancelRequested: operation.cancel_requested,
    superseded: operation.superseded,
    ...(operation.abandon === null ? {} : { abandon: operation.abandon }),
  };
  return { operation, engine, environment, effects, services, situation };
}

function toRecord(row: EffectRow): EffectRecord {
  const { kind, spec, outcome, facts, reason } = row;
  const serviceId = spec['serviceId'];
  return {
    kind,
    outcome,
    facts,
    ...(typeof serviceId === 'string' ? { serviceId } : {}),
    ...(reason === null ? {} : { reason }),
  };
}

function toService({ id, name, image, spec, secret_names }: Loaded['services'][number]): Service {
  return { ...spec, id, name, image, secretNames: secret_names };
}

function placeOf({ engine, published }: Loaded): EnvironmentSubject['place'] {
  return {
    networkPool: engine.network_pool,
    engineContainerId: engine.identities.containerId,
    published: published === null ? undefined : toServicePlace(published),
  };
}

function toServicePlace({ address, from, to, taken }: NonNullable<Loaded['published']>): ServicePlace {
  return { address, ports: { from, to }, taken };
}

export async function loadLogins(tx: Tx, environmentId: string): Promise<readonly LoginRow[]> {
  return tx.query<LoginRow>(
    /* sql */ `select tier, user_name, password_sealed, verifier_sealed from logins where environment_id = $1`,
    [environmentId],
  );
}

/** Sealed secrets of one service, by the names of their files. */
export async function loadServiceSecrets(
  tx: Tx,
  serviceId: string,
): Promise<readonly { readonly name: string; readonly sealed: Buffer }[]> {
  return tx.query(/* sql */ `select name, sealed from service_secrets where service_id = $1 order by name`, [
    serviceId,
  ]);
}

/** What a registry asks for; undefined when nothing is known of it. */
export async function loadRegistry(
  tx: Tx,
  server: string,
): Promise<{ readonly username: string; readonly password_sealed: Buffer } | undefined> {
  const [row] = await tx.query<{ username: string; password_sealed: Buffer }>(
    /* sql */ `select username, password_sealed from registries where server = $1`,
    [server],
  );
  return row;
}

/** The pinned engines of a host. */
export async function loadEngines(tx: Tx, hostId: string): Promise<readonly EngineRow[]> {
  return tx.query<EngineRow>(
    `${ENGINE} where e.host_id = $1 and e.state in ('ready', 'blocked') and e.generation is not null`,
    [hostId],
  );
}

export async function loadEngine(tx: Tx, engineId: string): Promise<EngineRow> {
  const [row] = await tx.query<EngineRow>(`${ENGINE} where e.id = $1`, [engineId]);
  if (row === undefined) throw new TypeError(`the catalog has no engine ${engineId}`);
  return row;
}
