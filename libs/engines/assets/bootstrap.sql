-- What every engine has before it first listens. Read in single-user mode, where an empty line ends a command.

create role surefoot_profile_local nologin;

create role surefoot_profile_private nologin;

-- Owns what a deleted environment leaves in other databases: it can do nothing, and nobody is a member of it.
create role surefoot_estate nologin;

-- Only the administrator connects to these: a database that a login should not reach is closed, not just unlisted.
revoke all on database postgres from public;

revoke all on database template1 from public;

create database surefoot_control template template0;

revoke all on database surefoot_control from public;

comment on database surefoot_control is 'Surefoot: tokens, ledger and identity of this engine';

-- Environments are made from it, so that token and ledger tables are there before anything else.
create database surefoot_template template template0 allow_connections false is_template true;

revoke all on database surefoot_template from public;

comment on database surefoot_template is 'Surefoot: what an environment''s database begins with';
