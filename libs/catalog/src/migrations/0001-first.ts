import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The whole first catalog. What keeps an invariant is a constraint or an index here, not a habit of the programs:
 * one live claim per host, one unfinished operation per environment, a token used once, an audit that only grows.
 */
export class First1764000000001 implements MigrationInterface {
  readonly name = 'First1764000000001';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  /** There is no way back: an older program refuses a newer schema instead. */
  down(): Promise<void> {
    return Promise.reject(new Error('catalog migrations are not reverted'));
  }
}

const UP = /* sql */ `
create table installation (
  singleton boolean primary key default true check (singleton),
  id uuid not null,
  created_at timestamptz not null default now()
);

create table projects (
  id uuid primary key,
  name text not null unique,
  created_at timestamptz not null default now()
);

create table api_keys (
  id uuid primary key,
  name text not null unique,
  key_hash bytea not null unique,
  role text not null check (role in ('viewer', 'developer', 'operator', 'admin')),
  project_ids uuid[],
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);
comment on column api_keys.key_hash is 'SHA-256 of the key: keys are random, so a slow hash would protect nothing more';
comment on column api_keys.project_ids is 'null: every project';

create table hosts (
  id text primary key,
  identity uuid not null,
  claim_number bigint not null default 0,
  refusal jsonb,
  created_at timestamptz not null default now()
);
comment on column hosts.claim_number is 'the last claim committed for this host; host/epoch and the engines follow it';
comment on column hosts.refusal is 'why the host takes no new work, with the case';

create table engines (
  id uuid primary key,
  name text not null,
  host_id text not null references hosts,
  state text not null check (state in ('creating', 'ready', 'failed', 'blocked')),
  image text not null,
  port integer not null check (port between 1 and 65535),
  network_pool text not null,
  identity uuid not null,
  identities jsonb not null default '{}',
  extensions text[] not null default '{}',
  generation integer,
  rule_generation integer,
  waiting_for text,
  created_at timestamptz not null default now()
);
create unique index engines_name on engines (name) where state <> 'failed';
create unique index engines_port on engines (host_id, port) where state <> 'failed';
comment on column engines.extensions is 'what the server offered when the engine was pinned';

create table engine_generations (
  engine_id uuid not null references engines,
  generation integer not null check (generation > 0),
  pin jsonb not null,
  created_at timestamptz not null default now(),
  primary key (engine_id, generation)
);

create table rule_generations (
  engine_id uuid not null references engines,
  generation integer not null check (generation > 0),
  digest text not null,
  applied_at timestamptz not null default now(),
  primary key (engine_id, generation)
);

create table environments (
  id uuid primary key,
  project_id uuid not null references projects,
  name text not null,
  state text not null check (state in ('provisioning', 'ready', 'degraded', 'updating', 'suspended', 'deleting', 'deleted', 'failed', 'blocked')),
  engine_id uuid not null references engines,
  profile text not null,
  extensions text[] not null,
  connection_limit integer not null check (connection_limit > 0),
  labels jsonb not null,
  database_name text not null,
  identities jsonb not null default '{}',
  created_at timestamptz not null default now(),
  last_observed_at timestamptz
);
-- A name is free again once nothing is left behind it: deleted, or failed and undone.
create unique index environments_name on environments (project_id, name) where state not in ('deleted', 'failed');
create unique index environments_database on environments (engine_id, database_name);
create index environments_list on environments (project_id, created_at, id);

create table logins (
  environment_id uuid not null references environments,
  tier text not null check (tier in ('migrate', 'app', 'readonly')),
  user_name text not null,
  password_sealed bytea,
  verifier_sealed bytea,
  created_at timestamptz not null default now(),
  primary key (environment_id, tier)
);
comment on column logins.password_sealed is 'AES-256-GCM under the key file; removed with the environment';

create table services (
  id uuid primary key,
  environment_id uuid not null references environments,
  name text not null,
  image text not null,
  identities jsonb not null default '{}',
  created_at timestamptz not null default now(),
  unique (environment_id, name)
);

create table operations (
  id uuid primary key,
  kind text not null,
  host_id text not null references hosts,
  project_id uuid references projects,
  environment_id uuid references environments,
  engine_id uuid not null references engines,
  requested_by uuid references api_keys,
  request jsonb not null default '{}',
  state text not null check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'blocked')),
  stage text not null default 'queued',
  attempt integer not null default 0,
  claim_id uuid,
  cancel_requested boolean not null default false,
  superseded boolean not null default false,
  abandon jsonb,
  preflight_interruptions integer not null default 0,
  stalled_resumes integer not null default 0,
  effects_at_resume integer not null default 0,
  reason jsonb,
  waiting_for text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz
);
-- One unfinished change per environment; a delete is accepted beside it, once.
create unique index operations_one_change on operations (environment_id)
  where kind <> 'environment.delete' and state in ('queued', 'running', 'blocked');
create unique index operations_one_delete on operations (environment_id)
  where kind = 'environment.delete' and state in ('queued', 'running', 'blocked');
create index operations_open on operations (host_id, created_at) where state in ('queued', 'running', 'blocked');
create index operations_by_environment on operations (environment_id, created_at, id);
create index operations_list on operations (created_at, id);
create index operations_engine_starts on operations (engine_id, created_at) where kind = 'engine.start';
comment on column operations.requested_by is 'null: the system itself';
comment on column operations.superseded is 'a delete waits for it: what was made is left to the delete';

create table jobs (
  id uuid primary key,
  operation_id uuid not null unique references operations,
  host_id text not null references hosts,
  schema_version integer not null,
  created_at timestamptz not null default now()
);

create table claims (
  id uuid primary key,
  job_id uuid not null references jobs,
  operation_id uuid not null references operations,
  host_id text not null references hosts,
  attempt integer not null,
  claim_number bigint not null,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  end_reason text,
  unique (operation_id, attempt),
  unique (host_id, claim_number)
);
create unique index claims_one_live on claims (host_id) where ended_at is null;

create table effects (
  id uuid primary key,
  operation_id uuid not null references operations,
  claim_id uuid not null references claims,
  ordinal integer not null,
  kind text not null,
  spec jsonb not null,
  outcome text not null default 'pending' check (outcome in ('pending', 'applied', 'refused', 'absent', 'partial', 'unknown', 'undone')),
  facts jsonb not null default '{}',
  reason jsonb,
  started_at timestamptz not null default now(),
  settled_at timestamptz,
  unique (operation_id, ordinal)
);

create index effects_by_claim on effects (claim_id);

create table tokens (
  token uuid primary key,
  effect_id uuid not null unique references effects,
  engine_id uuid not null references engines,
  claim_number bigint not null,
  resource text not null,
  settled_at timestamptz
);
create index tokens_open on tokens (engine_id) where settled_at is null;
create index tokens_age on tokens (engine_id, claim_number) where settled_at is not null;

create table cases (
  id uuid primary key,
  kind text not null,
  host_id text not null references hosts,
  engine_id uuid references engines,
  environment_id uuid references environments,
  operation_id uuid references operations,
  effect_id uuid references effects,
  reason jsonb not null,
  evidence jsonb not null default '{}',
  opened_at timestamptz not null default now(),
  closed_at timestamptz
);
-- The same doubt is one case, however often it is met again.
create unique index cases_open_effect on cases (effect_id) where closed_at is null;
create unique index cases_open_place on cases (kind, host_id, coalesce(engine_id, '00000000-0000-0000-0000-000000000000'))
  where closed_at is null and operation_id is null;

create table outbox (
  id bigint generated always as identity primary key,
  exchange text not null,
  routing_key text not null,
  message jsonb not null,
  created_at timestamptz not null default now(),
  published_at timestamptz
);
create index outbox_open on outbox (id) where published_at is null;

create table inbox (
  source text not null,
  message_id text not null,
  received_at timestamptz not null default now(),
  primary key (source, message_id)
);

create table idempotency_keys (
  api_key_id uuid not null references api_keys,
  key text not null,
  request_digest bytea not null,
  operation_id uuid references operations deferrable initially deferred,
  project_id uuid references projects deferrable initially deferred,
  created_at timestamptz not null default now(),
  primary key (api_key_id, key),
  check (num_nonnulls(operation_id, project_id) = 1)
);
comment on column idempotency_keys.request_digest is 'SHA-256 of method, path and body: the same key for anything else is a mistake';

create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  subject text not null,
  detail jsonb not null default '{}',
  previous_hash bytea not null,
  hash bytea not null
);

-- Each row's hash covers the one before, so a removed or changed row is seen. The lock makes "the one before" certain.
-- The hash is over texts, so what a session says about dates must not matter.
create function audit_chain() returns trigger language plpgsql
  set search_path = pg_catalog, public set datestyle = 'ISO, MDY' as $$
begin
  perform pg_advisory_xact_lock(7270616);
  -- The identity value was drawn before the lock; drawn again under it, ids stand in the order of the chain.
  new.id := nextval(pg_get_serial_sequence('public.audit', 'id'));
  new.previous_hash := coalesce((select a.hash from public.audit a order by a.id desc limit 1), sha256(''));
  new.hash := sha256(new.previous_hash || convert_to(
    concat_ws('|', new.id, new.at at time zone 'utc', new.actor, new.action, new.subject, new.detail::text), 'UTF8'));
  return new;
end $$;
create trigger audit_chain before insert on audit for each row execute function audit_chain();

create function audit_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'the audit is append-only';
end $$;
create trigger audit_append_only before update or delete on audit for each row execute function audit_append_only();
create trigger audit_no_truncate before truncate on audit for each statement execute function audit_append_only();

-- The relay and the worker listen; the notice is a hint, a timer runs the same path without it.
create function outbox_notify() returns trigger language plpgsql as $$
begin
  notify surefoot_outbox;
  return null;
end $$;
create trigger outbox_notify after insert on outbox for each statement execute function outbox_notify();
`;
