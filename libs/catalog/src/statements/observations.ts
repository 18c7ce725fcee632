/**
 * What the watcher of a host has seen (DESIGN §10): dated facts, and what they make of an environment. Only an environment
 * that nobody works on changes by them, and only between `ready` and `degraded`.
 */
import { randomUUID } from 'node:crypto';
import type { Reason } from '#kernel';
import type { ServiceIdentities } from '#protocol';
import { OPERATIONS } from '#protocol';
import type { Tx } from '../catalog.ts';
import type { ServiceObservation } from '../rows.ts';
import { writeAudit } from './audit.ts';
import { submitOperation } from './submit.ts';

export interface WatchedService {
  readonly id: string;
  readonly name: string;
  readonly environment_id: string;
  readonly environment_reason: Reason | null;
  readonly identities: ServiceIdentities | null;
  readonly observed: ServiceObservation | null;
  /** Starts that have failed since the last that did not; null when none has. */
  readonly failed_starts: { readonly count: number; /** ISO 8601 */ readonly last_at: string } | null;
}

/** Services of environments that are to be well: in their order. */
export async function watchedServices(tx: Tx, hostId: string): Promise<readonly WatchedService[]> {
  return tx.query<WatchedService>(
    /* sql */ `select s.id, s.name, s.environment_id, v.reason as environment_reason, v.identities -> 'services' -> s.id::text as identities, s.observed,
                      case when v.state = 'degraded' then (
                        select json_build_object('count', count(*), 'last_at', max(o.finished_at)) from operations o
                         where o.environment_id = v.id and o.kind = 'environment.start' and o.state = 'failed'
                           and o.created_at > coalesce((
                             select max(x.created_at) from operations x where x.environment_id = v.id and x.state = 'succeeded'), '-infinity')
                        having count(*) > 0) end as failed_starts
                 from environments v
                 join engines e on e.id = v.engine_id and e.host_id = $1
                 join services s on s.environment_id = v.id
                where v.networks > 0 and v.state in ('ready', 'degraded')
                order by s.environment_id, s.ordinal`,
    [hostId],
  );
}

export interface Observed {
  readonly serviceId: string;
  readonly observation: ServiceObservation;
}

/** Written also when nothing has changed: a fact is as good as its date. */
export async function noteObservations(tx: Tx, observed: readonly Observed[]): Promise<void> {
  await tx.query(
    /* sql */ `update services s set observed = o.observed::jsonb, observed_at = now()
                 from unnest($1::uuid[], $2::text[]) as o (id, observed) where s.id = o.id`,
    [observed.map(({ serviceId }) => serviceId), observed.map(({ observation }) => JSON.stringify(observation))],
  );
}

/** Reasons that the watcher gives, and takes back. */
const WATCHED_REASON = 'service_';

const JUDGE = /* sql */ `
  with before as (select id, state from environments where id = $1 for update)
  update environments v
     set state = case when $2::jsonb is null then 'ready' else 'degraded' end, reason = $2
    from before
   where v.id = before.id and v.reason is distinct from $2
     and (v.state = 'ready' or (v.state = 'degraded' and v.reason ->> 'code' like '${WATCHED_REASON}%'))
     and not exists (
       select 1 from operations o where o.environment_id = v.id and o.state in ('queued', 'running', 'blocked'))
  returning before.state <> v.state as turned`;

/**
 * @param reason why the environment does not hold, with a code that begins with `service_`; undefined when it does
 * @returns whether that turned it from ready to degraded, or back
 */
export async function judgeEnvironment(
  tx: Tx,
  hostId: string,
  environmentId: string,
  reason: Reason | undefined,
): Promise<boolean> {
  if (reason !== undefined && !reason.code.startsWith(WATCHED_REASON))
    throw new TypeError(`${reason.code} is no reason of the watcher`);
  const [changed] = await tx.query<{ turned: boolean }>(JUDGE, [
    environmentId,
    reason === undefined ? null : JSON.stringify(reason),
  ]);
  // A service that ends again and again has the same news each time: it is shown, and audited once.
  if (changed?.turned !== true) return false;
  await writeAudit(
    tx,
    `host ${hostId}`,
    reason === undefined ? 'environment.holds' : 'environment.degraded',
    environmentId,
    reason === undefined ? {} : { reason: { ...reason } },
  );
  return true;
}

const START = 'environment.start';

const TO_START = /* sql */ `
  update environments v set state = $2
   where v.id = $1 and v.state in ('ready', 'degraded')
     and not exists (
       select 1 from operations o where o.environment_id = v.id and o.state in ('queued', 'running', 'blocked'))
  returning v.project_id, v.engine_id`;

/**
 * Asks for the services of an environment to be started again: by the worker that found them stopped at its own start.
 * @returns false when somebody works on the environment
 */
export async function requestServicesStart(tx: Tx, hostId: string, environmentId: string): Promise<boolean> {
  const [environment] = await tx.query<{ project_id: string; engine_id: string }>(TO_START, [
    environmentId,
    OPERATIONS[START].environment.open,
  ]);
  if (environment === undefined) return false;
  const operationId = randomUUID();
  const submitted = await submitOperation(tx, 'internal', {
    operationId,
    jobId: randomUUID(),
    kind: START,
    hostId,
    projectId: environment.project_id,
    environmentId,
    engineId: environment.engine_id,
    request: {},
  });
  if (!submitted) throw new TypeError(`environment ${environmentId} has an open operation, though its row said not`);
  await writeAudit(tx, `host ${hostId}`, START, environmentId, { operationId });
  return true;
}
