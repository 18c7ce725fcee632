import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Services beside the database: what they are, their secrets, what is seen of them, and how many a host takes. */
export class Services1764400000002 implements MigrationInterface {
  readonly name = 'Services1764400000002';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  /** There is no way back: an older program refuses a newer schema instead. */
  down(): Promise<void> {
    return Promise.reject(new Error('catalog migrations are not reverted'));
  }
}

const UP = /* sql */ `
alter table services
  drop column identities,
  add column ordinal integer not null default 0,
  add column spec jsonb not null default '{}',
  add column observed jsonb,
  add column observed_at timestamptz;
comment on column services.spec is 'command, env, ports, health, limits, readOnly: no secret';
comment on column services.observed is 'what the watcher saw of its container when it last changed';

create table service_secrets (
  service_id uuid not null references services,
  name text not null,
  sealed bytea not null,
  primary key (service_id, name)
);
comment on column service_secrets.sealed is 'AES-256-GCM under the key file; removed with the environment';

create table registries (
  server text primary key,
  username text not null,
  password_sealed bytea not null,
  created_at timestamptz not null default now()
);
comment on column registries.server is 'as an image names it: docker.io, registry.example.com:5000';
comment on column registries.password_sealed is 'AES-256-GCM under the key file';

alter table hosts
  add column service_networks_max integer not null default 0 check (service_networks_max >= 0),
  add column service_address text not null default '127.0.0.1',
  add column service_ports int4range;
comment on column hosts.service_networks_max is 'networks of environments that the host takes; set-up writes it';
comment on column hosts.service_ports is 'ports for services; null: this host publishes none';

alter table environments
  add column networks integer not null default 0 check (networks between 0 and 2),
  add column reason jsonb;
comment on column environments.networks is 'how many its services need: none, its own, and one for published ports';
comment on column environments.reason is 'why it is degraded';
create index environments_networks on environments (engine_id) where networks > 0 and state not in ('deleted', 'failed');

alter table engines add column profiles text[] not null default '{local}';
comment on column engines.profiles is 'network profiles that its rules in force hold';

alter table operations add column progress text;
comment on column operations.progress is 'how far the effect in hand is, for people';
`;
