/** Everything the plan of an operation goes by, in one read. */
import { environmentNames } from '#kernel';
import type { EffectRecord, Situation } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { EffectRow, EngineRow, EnvironmentRow, LoginRow, OperationRow } from '../rows.ts';

export interface OperationInFull {
  readonly operation: OperationRow;
  readonly engine: EngineRow;
  readonly environment: EnvironmentRow | undefined;
  readonly effects: readonly EffectRow[];
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
           where n.engine_id = o.engine_id and n.state = 'ready' and n.id is distinct from o.environment_id limit 1) as neighbour
    from operations o where o.id = $1`;

interface Loaded {
  readonly operation: OperationRow;
  readonly engine: EngineRow;
  readonly environment: EnvironmentRow | null;
  readonly effects: readonly EffectRow[];
  readonly neighbour: string | null;
}

/** Databases that no login of an environment may reach, on any engine. */
const NEVER_REACHED = ['postgres', 'template1', 'surefoot_control'];

export async function loadOperation(tx: Tx, operationId: string): Promise<OperationInFull> {
  const [row] = await tx.query<Loaded>(LOAD, [operationId]);
  if (row === undefined) throw new TypeError(`the catalog has no operation ${operationId}`);
  const { operation, engine, effects } = row;
  const environment = row.environment ?? undefined;
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
        };
  const situation: Situation = {
    subject,
    effects: effects.map(toRecord),
    cancelRequested: operation.cancel_requested,
    superseded: operation.superseded,
    ...(operation.abandon === null ? {} : { abandon: operation.abandon }),
  };
  return { operation, engine, environment, effects, situation };
}

function toRecord(row: EffectRow): EffectRecord {
  const { kind, outcome, facts, reason } = row;
  return { kind, outcome, facts, ...(reason === null ? {} : { reason }) };
}

export async function loadLogins(tx: Tx, environmentId: string): Promise<readonly LoginRow[]> {
  return tx.query<LoginRow>(
    /* sql */ `select tier, user_name, password_sealed, verifier_sealed from logins where environment_id = $1`,
    [environmentId],
  );
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
