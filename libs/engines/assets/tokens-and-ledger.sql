revoke all on schema public from public;

create schema surefoot;

-- The permission of one try of one effect. A row is never removed: a revoked one is its tombstone.
create table surefoot.tokens (
  token uuid primary key,
  effect uuid not null,
  resource text not null,
  attempt integer not null,
  claim_number bigint not null,
  state text not null check (state in ('active', 'revoked')),
  backend_pid integer,
  backend_start timestamptz,
  registered_at timestamptz not null default now()
);

comment on column surefoot.tokens.backend_pid is 'with backend_start, the exact backend that acts under the token';

-- Committed in the transaction of the change it speaks of.
create table surefoot.ledger (
  token uuid primary key,
  kind text not null,
  facts jsonb not null,
  at timestamptz not null default now()
);
