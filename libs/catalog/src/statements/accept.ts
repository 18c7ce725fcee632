/**
 * Accepting a request (DESIGN §3, 1): operation, job, audit, idempotency and outbox in one transaction, or nothing.
 *
 * A refusal is thrown as a Problem, so that the transaction is rolled back with whatever it had begun. Every id is made by
 * the caller before the transaction, so a repetition after a lost answer finds its own rows and says `already`. Rows are
 * locked in one order, operations before environments, which is the order in which a worker ends them.
 */
import type { JsonObject, Tier } from '#kernel';
import { Problem } from '#kernel';
import type { EnvironmentState, OperationKind, OperationState, ServiceSpec } from '#protocol';
import { OPERATIONS, SERVICES_PROFILE } from '#protocol';
import type { Tx } from '../catalog.ts';
import { CatalogUnavailable } from '../errors.ts';
import { writeAudit } from './audit.ts';
import { type Idempotency, idempotencyMismatch, rememberKey } from './idempotency.ts';
import { submitOperation } from './submit.ts';
import { endQueued } from './unbegun.ts';
import { OPEN_CASE_ID, type OtherOperation, waitingForOperation } from './waiting.ts';

export interface Acceptance {
  readonly operationId: string;
  readonly jobId: string;
  readonly requestedBy: { readonly keyId: string; readonly name: string };
  readonly idempotency?: Idempotency;
}

export interface EnvironmentToCreate extends Acceptance {
  readonly environmentId: string;
  readonly projectId: string;
  readonly engine: { readonly id: string; readonly hostId: string };
  readonly name: string;
  readonly databaseName: string;
  readonly profile: string;
  readonly extensions: readonly string[];
  readonly connectionLimit: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly logins: readonly LoginToCreate[];
  readonly services: readonly ServiceToCreate[];
}

export interface ServiceToCreate {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly spec: ServiceSpec;
  readonly secrets: readonly { readonly name: string; readonly sealed: Buffer }[];
}

export interface LoginToCreate {
  readonly tier: Tier;
  readonly userName: string;
  readonly passwordSealed: Buffer;
  readonly verifierSealed: Buffer;
}

export interface Accepted {
  /** `already`: this very request, or one with the same idempotency key, was accepted before. */
  readonly answer: 'accepted' | 'already';
  readonly operationId: string;
}

/** The first digits of the new id have been used with this name: the caller makes new ids and tries again. */
export class EnvironmentIdUsed extends Error {
  constructor() {
    super('a database of that name exists or existed: its id begins like the new one');
    this.name = 'EnvironmentIdUsed';
  }
}

const ENVIRONMENT = /* sql */ `
  insert into environments (id, project_id, name, state, engine_id, profile, extensions, connection_limit, labels, database_name, networks)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing returning 1`;

const HOLDER = /* sql */ `
  select id from environments where project_id = $1 and name = $2 and state not in ('deleted', 'failed')`;

const LOGINS = /* sql */ `
  insert into logins (environment_id, tier, user_name, password_sealed, verifier_sealed)
  select $1, * from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[])`;

/**
 * @throws Problem `environment_exists`, `no_engine`, `insufficient_capacity`, `ports_unavailable`, `services_unavailable`,
 *   `idempotency_mismatch`; EnvironmentIdUsed
 */
export async function acceptEnvironmentCreate(tx: Tx, create: EnvironmentToCreate): Promise<Accepted> {
  const before = await acceptedBefore(tx, create);
  if (before !== undefined) return before;
  const { environmentId, projectId, engine, name, profile, extensions, connectionLimit, labels, logins, services } =
    create;
  const networks = networksFor(services);
  // Hosts before engines, as a claim locks them.
  if (networks > 0) await tx.query(HOST_LOCK, [engine.hostId]);
  const able = await tx.query(
    /* sql */ `select 1 from engines where id = $1 and state in ('ready', 'creating') for share`,
    [engine.id],
  );
  if (able.length === 0) throw new Problem('no_engine', 'no engine is ready, or being made, to hold an environment');
  const kind = 'environment.create';
  const made = await tx.query(ENVIRONMENT, [
    environmentId,
    projectId,
    name,
    OPERATIONS[kind].environment.open,
    engine.id,
    profile,
    extensions,
    connectionLimit,
    JSON.stringify(labels),
    create.databaseName,
    networks,
  ]);
  if (made.length === 0) {
    const [holder] = await tx.query<{ id: string }>(HOLDER, [projectId, name]);
    // This very request: its first try committed while this one waited for it.
    if (holder?.id === environmentId) return { answer: 'already', operationId: create.operationId };
    throw holder === undefined ? new EnvironmentIdUsed() : nameTaken(name, holder.id);
  }
  // After the name: whoever makes sure that there is an environment is told that it is there, also on a full host.
  if (networks > 0) await assertCapacity(tx, create, networks);
  await tx.query(LOGINS, [
    environmentId,
    logins.map((login) => login.tier),
    logins.map((login) => login.userName),
    logins.map((login) => login.passwordSealed),
    logins.map((login) => login.verifierSealed),
  ]);
  if (services.length > 0) await insertServices(tx, environmentId, services);
  await enqueue(tx, create, kind, {
    hostId: engine.hostId,
    projectId,
    environmentId,
    engineId: engine.id,
    request: {
      name,
      profile,
      extensions,
      connectionLimit,
      labels,
      ...(services.length === 0 ? {} : { services: services.map((service) => ({ name: service.name })) }),
    },
  });
  return { answer: 'accepted', operationId: create.operationId };
}

/** An environment's own network, and one more when something is published. */
function networksFor(services: readonly ServiceToCreate[]): number {
  if (services.length === 0) return 0;
  return services.some(({ spec }) => spec.ports.length > 0) ? 2 : 1;
}

/**
 * Two requests cannot both take the last networks: the second waits here. A statement of its own, since one that waits for
 * a lock sees what was there when it began. `no key`, so that nobody waits who only refers to the host.
 */
const HOST_LOCK = /* sql */ `select 1 from hosts where id = $1 for no key update`;

// This request's own row is there already.
const CAPACITY = /* sql */ `
  select h.service_networks_max as "max", h.service_ports is not null as "publishes",
         (select coalesce(sum(v.networks), 0)::integer from environments v join engines g on g.id = v.engine_id
           where g.host_id = h.id and v.networks > 0 and v.state not in ('deleted', 'failed') and v.id <> $3) as "used",
         (select e.state = 'creating' or '${SERVICES_PROFILE}' = any (e.profiles) from engines e where e.id = $2) as "reachable"
    from hosts h where h.id = $1`;

interface Capacity {
  readonly max: number;
  readonly publishes: boolean;
  readonly used: number;
  readonly reachable: boolean | null;
}

/** Services are refused, and all that was begun here with them, when the host has no room or no way for them. It is locked. */
async function assertCapacity(tx: Tx, create: EnvironmentToCreate, networks: number): Promise<void> {
  const { engine, environmentId } = create;
  const [host] = await tx.query<Capacity>(CAPACITY, [engine.hostId, engine.id, environmentId]);
  if (host === undefined) throw new TypeError(`the catalog has no host ${engine.hostId}`);
  if (host.reachable !== true)
    throw new Problem(
      'services_unavailable',
      'the rules of the engine do not let services in yet: run npm start, which asks for them, and try again',
    );
  if (networks > 1 && !host.publishes)
    throw new Problem(
      'ports_unavailable',
      `host ${engine.hostId} publishes no ports of services, since nothing closes it to them: run npm start as root, ` +
        'or close the host to the addresses of SUREFOOT_NETWORK_POOL and set SUREFOOT_SERVICE_PORTS in local.env',
    );
  if (host.used + networks > host.max)
    throw new Problem(
      'insufficient_capacity',
      `host ${engine.hostId} takes ${host.max} networks of environments with services; ${host.used} are in use, and this ` +
        `one needs ${networks}: delete an environment with services first`,
    );
}

const SERVICES = /* sql */ `
  insert into services (id, environment_id, ordinal, name, image, spec)
  select s.id, $1, s.ordinal, s.name, s.image, s.spec::jsonb
    from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) with ordinality as s (id, name, image, spec, ordinal)`;

const SERVICE_SECRETS = /* sql */ `
  insert into service_secrets (service_id, name, sealed) select * from unnest($1::uuid[], $2::text[], $3::bytea[])`;

async function insertServices(tx: Tx, environmentId: string, services: readonly ServiceToCreate[]): Promise<void> {
  await tx.query(SERVICES, [
    environmentId,
    services.map(({ id }) => id),
    services.map(({ name }) => name),
    services.map(({ image }) => image),
    services.map(({ spec }) => JSON.stringify(spec)),
  ]);
  const secrets = services.flatMap(({ id, secrets: own }) => own.map((secret) => ({ id, ...secret })));
  await tx.query(SERVICE_SECRETS, [
    secrets.map(({ id }) => id),
    secrets.map(({ name }) => name),
    secrets.map(({ sealed }) => sealed),
  ]);
}

function nameTaken(name: string, environmentId: string): Problem {
  return new Problem('environment_exists', `the project has an environment ${JSON.stringify(name)}`, {
    members: { environmentId },
  });
}

export interface EnvironmentToDelete extends Acceptance {
  readonly environmentId: string;
  /** Refused when the environment has changed since this version was read. */
  readonly ifVersion?: string;
}

interface OpenOperation extends OtherOperation {
  readonly kind: OperationKind;
  readonly state: OperationState;
}

const OPEN = /* sql */ `
  select o.id, o.kind, o.state,
         ${OPEN_CASE_ID} as case_id
    from operations o
   where o.environment_id = $1 and o.state in ('queued', 'running', 'blocked')
   order by o.id for update of o`;

const OPEN_DELETE = /* sql */ `
  select id from operations
   where environment_id = $1 and kind = 'environment.delete' and state in ('queued', 'running', 'blocked')`;

const TO_DELETE = /* sql */ `
  select v.state, v.project_id, v.engine_id, g.host_id, v.xmin::text as version
    from environments v join engines g on g.id = v.engine_id
   where v.id = $1 for update of v`;

interface ToDelete {
  readonly state: EnvironmentState;
  readonly project_id: string;
  readonly engine_id: string;
  readonly host_id: string;
  readonly version: string;
}

/**
 * A delete is accepted beside what still runs, once (DESIGN §3): a queued change is cancelled on the spot, a running one is
 * told to stop and leave the rest to the delete, a blocked one is waited for.
 * @throws Problem `not_found`, `environment_deleted`, `environment_busy`, `precondition_failed`, `idempotency_mismatch`
 */
export async function acceptEnvironmentDelete(tx: Tx, remove: EnvironmentToDelete): Promise<Accepted> {
  const before = await acceptedBefore(tx, remove);
  if (before !== undefined) return before;
  const { environmentId, operationId } = remove;
  const open = await tx.query<OpenOperation>(OPEN, [environmentId]);
  const [environment] = await tx.query<ToDelete>(TO_DELETE, [environmentId]);
  if (environment === undefined) throw new Problem('not_found', 'there is no such environment');
  const kind = 'environment.delete';
  const deleting = open.find((operation) => operation.kind === kind);
  if (deleting !== undefined) return secondDelete(deleting, operationId);
  if (environment.state === 'deleted') throw new Problem('environment_deleted', 'the environment is deleted');
  if (remove.ifVersion !== undefined && remove.ifVersion !== environment.version)
    throw new Problem('precondition_failed', 'the environment has changed since it was read: read it again');

  let waitingFor: string | undefined;
  for (const other of open) waitingFor = await makeWay(tx, other, operationId);
  const queued = await enqueue(tx, remove, kind, {
    hostId: environment.host_id,
    projectId: environment.project_id,
    environmentId,
    engineId: environment.engine_id,
    request: { previousState: environment.state },
    // What still runs shows its own state, and what is blocked stays so, until it is the delete's turn. What has failed
    // stays so to its end: nothing of it is left, and its name, which is free, is not taken back.
    ...(waitingFor === undefined ? {} : { waitingFor }),
    ...(waitingFor === undefined && environment.state !== 'failed'
      ? { environmentState: OPERATIONS[kind].environment.open }
      : {}),
  });
  if (queued) return { answer: 'accepted', operationId };
  // Another delete was accepted between the look at the operations and the lock on the environment. It is read without a
  // lock: the environment is locked here already, and whoever locks in the right order would wait for that one for ever.
  const [other] = await tx.query<{ id: string }>(OPEN_DELETE, [environmentId]);
  if (other === undefined) throw new CatalogUnavailable('the delete in the way has ended meanwhile');
  return secondDelete(other, operationId);
}

function secondDelete(other: { readonly id: string }, operationId: string): Accepted {
  // This very request: its first try committed while this one waited for it.
  if (other.id === operationId) return { answer: 'already', operationId };
  throw new Problem('environment_busy', 'the environment is being deleted', { members: { operationId: other.id } });
}

/** @returns what the delete has to wait for */
async function makeWay(tx: Tx, other: OpenOperation, deleteId: string): Promise<string | undefined> {
  if (other.state === 'queued') {
    await endQueued(tx, other.id, 'cancel', { code: 'superseded', message: `the delete ${deleteId} takes its place` });
    return undefined;
  }
  if (other.state === 'running')
    await tx.query(/* sql */ `update operations set cancel_requested = true, superseded = true where id = $1`, [
      other.id,
    ]);
  return waitingForOperation(other);
}

/** A repetition of this very transaction, or the same idempotency key. */
async function acceptedBefore(tx: Tx, acceptance: Acceptance): Promise<Accepted | undefined> {
  const { operationId, idempotency } = acceptance;
  const known = await tx.query(/* sql */ `select 1 from operations where id = $1`, [operationId]);
  if (known.length > 0) return { answer: 'already', operationId };
  const remembered = await rememberKey(tx, idempotency, { operationId });
  if (remembered.answer === 'first') return undefined;
  if (remembered.answer === 'mismatch' || remembered.operationId === null) throw idempotencyMismatch();
  return { answer: 'already', operationId: remembered.operationId };
}

interface Queued {
  readonly hostId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly engineId: string;
  readonly request: JsonObject;
  readonly waitingFor?: string;
  readonly environmentState?: EnvironmentState;
}

/** @returns false when the environment has another open operation of this sort */
async function enqueue(tx: Tx, acceptance: Acceptance, kind: OperationKind, queued: Queued): Promise<boolean> {
  const { operationId, jobId, requestedBy } = acceptance;
  const { environmentState, ...operation } = queued;
  if (!(await submitOperation(tx, 'rest', { operationId, jobId, kind, requestedBy: requestedBy.keyId, ...operation })))
    return false;
  if (environmentState !== undefined)
    await tx.query(/* sql */ `update environments set state = $2 where id = $1`, [
      queued.environmentId,
      environmentState,
    ]);
  await writeAudit(tx, `key ${requestedBy.name}`, kind, queued.environmentId, { operationId });
  return true;
}
