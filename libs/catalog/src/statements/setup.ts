/**
 * The first rows: installation, host, project `default`, the admin key, and the engine with the operation that makes it.
 * Set-up is repeated at every start, so each statement finds what is there and leaves it.
 */
import { OPERATIONS, SERVICES_PROFILE } from '#protocol';
import type { Tx } from '../catalog.ts';
import { writeAudit } from './audit.ts';
import { submitOperation } from './submit.ts';

/** The catalog belongs to another installation. Nothing was changed. */
class ForeignCatalog extends Error {
  constructor(found: string, expected: string) {
    super(
      `the catalog belongs to installation ${found}, this state folder to ${expected}: ` +
        'use the state folder that the catalog was set up with, or another catalog',
    );
    this.name = 'ForeignCatalog';
  }
}

/** Ids are made by the caller before the transaction, so that a repetition after a lost reply finds its own rows. */
export interface Seed {
  readonly installation: string;
  readonly host: { readonly id: string; readonly identity: string; readonly services: HostServices };
  readonly project: { readonly id: string; readonly name: string };
  /** SHA-256 of the key. */
  readonly adminKey: { readonly id: string; readonly name: string; readonly hash: Buffer };
}

/** What a host has for services: set anew at each set-up, from its own settings. */
export interface HostServices {
  /** Networks of environments that it takes. */
  readonly networksMax: number;
  readonly address: string;
  /** Undefined: it publishes none. */
  readonly ports: { readonly from: number; readonly to: number } | undefined;
}

const HOST_SERVICES = /* sql */ `
  update hosts set service_networks_max = $2, service_address = $3, service_ports = int4range($4, $5, '[]')
   where id = $1`;

const HOST_WITHOUT_PORTS = /* sql */ `
  update hosts set service_networks_max = $2, service_address = $3, service_ports = null where id = $1`;

/** @returns a sentence for each thing that was done now */
export async function seedCatalog(tx: Tx, seed: Seed): Promise<readonly string[]> {
  await takeInstallation(tx, seed.installation);
  const { host, project, adminKey } = seed;
  const done: string[] = [];
  const hosts = await tx.query(
    /* sql */ `insert into hosts (id, identity) values ($1, $2) on conflict do nothing returning id`,
    [host.id, host.identity],
  );
  if (hosts.length > 0) done.push(`host ${host.id}`);
  const { networksMax, address, ports } = host.services;
  await tx.query(ports === undefined ? HOST_WITHOUT_PORTS : HOST_SERVICES, [
    host.id,
    networksMax,
    address,
    ...(ports === undefined ? [] : [ports.from, ports.to]),
  ]);
  const projects = await tx.query(
    /* sql */ `insert into projects (id, name) values ($1, $2) on conflict do nothing returning id`,
    [project.id, project.name],
  );
  if (projects.length > 0) done.push(`project ${project.name}`);
  const keys = await tx.query(ADMIN_KEY, [adminKey.id, adminKey.name, adminKey.hash]);
  if (keys.length > 0) done.push(`API key ${adminKey.name}`);
  if (done.length > 0) await writeAudit(tx, 'setup', 'installation.seed', seed.installation, { made: done });
  return done;
}

/** `local.env` is the operator's: a key that was changed there replaces the one before. */
const ADMIN_KEY = /* sql */ `
  insert into api_keys (id, name, key_hash, role) values ($1, $2, $3, 'admin')
  on conflict (name) do update set key_hash = excluded.key_hash, revoked_at = null
   where api_keys.key_hash <> excluded.key_hash or api_keys.revoked_at is not null
  returning id`;

async function takeInstallation(tx: Tx, installation: string): Promise<void> {
  await tx.query(/* sql */ `insert into installation (id) values ($1) on conflict do nothing`, [installation]);
  const [row] = await tx.query<{ id: string }>(/* sql */ `select id from installation`);
  if (row !== undefined && row.id !== installation) throw new ForeignCatalog(row.id, installation);
}

/** @returns undefined when the catalog has no such host */
export async function hostIdentity(tx: Tx, hostId: string): Promise<string | undefined> {
  const [row] = await tx.query<{ identity: string }>(/* sql */ `select identity from hosts where id = $1`, [hostId]);
  return row?.identity;
}

export interface EngineToCreate {
  readonly engineId: string;
  readonly operationId: string;
  readonly jobId: string;
  readonly hostId: string;
  readonly name: string;
  readonly image: string;
  readonly port: number;
  readonly networkPool: string;
  /** UUID for the engine's age record. */
  readonly identity: string;
}

const KIND = 'engine.create';

const ENGINE = /* sql */ `
  insert into engines (id, name, host_id, state, image, port, network_pool, identity)
  select $1, $2, $3, $4, $5, $6, $7, $8
   where not exists (select 1 from engines where host_id = $3 and state <> 'failed')
  on conflict do nothing returning id`;

/**
 * The host's first engine, to be made by its worker like anything else: engine, operation, job, outbox and audit at once.
 * One that failed does not count, since its operation has undone it.
 * @returns false when the host has an engine, or one is being made
 */
export async function requestFirstEngine(tx: Tx, engine: EngineToCreate): Promise<boolean> {
  const { engineId, operationId, jobId, hostId, name, image, port, networkPool, identity } = engine;
  const state = OPERATIONS[KIND].engine.open;
  const made = await tx.query(ENGINE, [engineId, name, hostId, state, image, port, networkPool, identity]);
  if (made.length === 0) return false;
  const request = { name, image, port, networkPool };
  await submitOperation(tx, 'setup', { operationId, jobId, kind: KIND, hostId, engineId, request });
  await writeAudit(tx, 'setup', KIND, engineId, { operationId });
  return true;
}

const RULES_KIND = 'engine.rules';

const WITHOUT_SERVICES = /* sql */ `
  select e.id from engines e
   where e.host_id = $1 and e.state = 'ready' and e.rule_generation is not null and not ('${SERVICES_PROFILE}' = any (e.profiles))
     and not exists (select 1 from operations o where o.engine_id = e.id and o.kind = '${RULES_KIND}' and o.state in ('queued', 'running', 'blocked'))
   order by e.created_at, e.id limit 1 for update`;

/**
 * An engine that was made before there were services gets the rules that let them in, from its worker.
 * @returns whether one was asked for now
 */
export async function requestServiceRules(
  tx: Tx,
  hostId: string,
  ids: { readonly operationId: string; readonly jobId: string },
): Promise<boolean> {
  const [engine] = await tx.query<{ id: string }>(WITHOUT_SERVICES, [hostId]);
  if (engine === undefined) return false;
  await submitOperation(tx, 'setup', { ...ids, kind: RULES_KIND, hostId, engineId: engine.id, request: {} });
  await writeAudit(tx, 'setup', RULES_KIND, engine.id, { operationId: ids.operationId });
  return true;
}
