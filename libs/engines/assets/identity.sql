create table surefoot.identity (
  singleton boolean primary key default true check (singleton),
  installation uuid not null,
  engine uuid not null,
  identity uuid not null,
  claim_number bigint not null
);

comment on column surefoot.identity.claim_number is 'the last claim that registered a token here; it only grows';
