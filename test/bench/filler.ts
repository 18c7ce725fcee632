/**
 * Ten thousand finished environments, in the catalog only: with operation, job, claim, effects and tokens each, as if they
 * had been made by the worker long ago. Only for a private installation.
 */
import { randomUUID } from 'node:crypto';
import type { Catalog } from '#catalog';
import type { EngineInUse } from './installation.ts';

/**
 * Claim numbers are negative: whatever compares ages by the highest number still finds the real one.
 * $1 project, $2 engine, $3 host, $4 how many, $5 what marks the run.
 */
const FILL = /* sql */ `
  with drawn as (
    select number, gen_random_uuid() as environment, gen_random_uuid() as operation, gen_random_uuid() as job, gen_random_uuid() as claim
      from generate_series(1, $4::integer) as number),
  made as (
    insert into environments (id, project_id, name, state, engine_id, profile, extensions, connection_limit, labels, database_name, identities, created_at, last_observed_at)
    select environment, $1, 'bench-' || $5 || '-' || number, 'ready', $2, 'local', '{}', 20, '{}', 'bench-' || $5 || '-' || number || '_' || left(environment::text, 8),
           jsonb_build_object('databaseOid', 1000000 + number), now() - interval '1 day', now() - interval '1 day' from drawn),
  entered as (
    insert into logins (environment_id, tier, user_name, password_sealed, verifier_sealed)
    select environment, tier, 'bench-' || $5 || '-' || number || '_' || tier, sha256(environment::text::bytea), sha256(operation::text::bytea)
      from drawn, unnest(array['migrate', 'app', 'readonly']) as tier),
  requested as (
    insert into operations (id, kind, host_id, project_id, environment_id, engine_id, state, stage, attempt, claim_id, created_at, started_at, finished_at)
    select operation, 'environment.create', $3, $1, environment, $2, 'succeeded', 'succeeded', 1, claim, now() - interval '1 day', now() - interval '1 day', now() - interval '1 day' from drawn),
  queued as (insert into jobs (id, operation_id, host_id, schema_version) select job, operation, $3, 1 from drawn),
  claimed as (
    insert into claims (id, job_id, operation_id, host_id, attempt, claim_number, ended_at, end_reason)
    select claim, job, operation, $3, 1, -number, now(), 'succeeded' from drawn),
  steps as (
    select gen_random_uuid() as effect, gen_random_uuid() as token, operation, claim, number, kind, ordinal
      from drawn, unnest(array['roles', 'database', 'interior', 'publish-database', 'rules', 'probe']) with ordinality as k (kind, ordinal)),
  settled as (
    insert into effects (id, operation_id, claim_id, ordinal, kind, spec, outcome, settled_at)
    select effect, operation, claim, ordinal, kind, jsonb_build_object('environmentId', operation), 'applied', now() from steps)
  insert into tokens (token, effect_id, engine_id, claim_number, resource, settled_at)
  select token, effect, $2, -number, 'bench', now() from steps`;

export async function fillCatalog(catalog: Catalog, engine: EngineInUse, howMany: number): Promise<void> {
  const [place] = await catalog.query<{ project: string; host: string }>(
    `select p.id as project, e.host_id as host from projects p, engines e where p.name = 'default' and e.id = $1`,
    [engine.engineId],
  );
  if (place === undefined) throw new Error('the catalog has no project "default"');
  // In portions: no statement on the catalog may take long.
  const portion = 1_000;
  for (let done = 0; done < howMany; done += portion)
    await catalog.query(
      FILL.replace('generate_series(1, $4::integer)', `generate_series(${done + 1}, ${done} + $4::integer)`),
      [place.project, engine.engineId, place.host, Math.min(portion, howMany - done), randomUUID().slice(0, 8)],
    );
  for (const table of ['environments', 'operations', 'jobs', 'claims', 'effects', 'tokens', 'logins'])
    await catalog.query(`analyze ${table}`);
}

export async function countEnvironments(catalog: Catalog): Promise<number> {
  const [row] = await catalog.query<{ count: number }>(
    `select count(*)::integer as count from environments where state not in ('deleted', 'failed')`,
  );
  return row?.count ?? 0;
}
