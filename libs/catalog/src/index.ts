export { Catalog, connectionSettings } from './catalog.ts';
export type { CatalogOptions, CatalogPatience, Tx } from './catalog.ts';
export { ENTITIES } from './entities/index.ts';
export { CatalogSource } from './data-source.ts';
export { CatalogFateUnknown, CatalogUnavailable } from './errors.ts';
export { CatalogListener, OUTBOX_CHANNEL } from './listener.ts';
export { findEngine, listEngines, listProjects } from './listings.ts';
export { assertCatalogVersion, CatalogVersionMismatch, migrateCatalog } from './migrate.ts';
export { MIGRATIONS } from './migrations/index.ts';
export type { EngineEntity } from './entities/engine.ts';
export type {
  EffectRow,
  EngineRow,
  EnvironmentRow,
  LoginRow,
  OperationRow,
  ServiceObservation,
  ServiceState,
} from './rows.ts';
export { acceptEnvironmentCreate, acceptEnvironmentDelete, EnvironmentIdUsed } from './statements/accept.ts';
export type { Acceptance, LoginToCreate, ServiceToCreate } from './statements/accept.ts';
export { acceptPlace, engineAge, hostAge, refusePlace } from './statements/ages.ts';
export type { CatalogAge } from './statements/ages.ts';
export { writeAudit } from './statements/audit.ts';
export { cancelOperation, isCancelled } from './statements/cancel.ts';
export { claimJob, liveClaim, requeueOperation } from './statements/claims.ts';
export type { Claim, ClaimAnswer } from './statements/claims.ts';
export {
  findEffect,
  noteProgress,
  recordEffect,
  settleEffect,
  settleUnstarted,
  tokensOfClaim,
} from './statements/effects.ts';
export type { EffectToRecord, Settlement } from './statements/effects.ts';
export { blockOperation, finishOperation } from './statements/endings.ts';
export { failQueued } from './statements/unbegun.ts';
export type { CaseToOpen, EngineFinding } from './statements/endings.ts';
export type { Idempotency } from './statements/idempotency.ts';
export {
  judgeEnvironment,
  noteObservations,
  requestServicesStart,
  watchedServices,
} from './statements/observations.ts';
export type { Observed, WatchedService } from './statements/observations.ts';
export { hasOutbox, markPublished, takeOutbox } from './statements/outbox.ts';
export type { OutboxRow } from './statements/outbox.ts';
export { createProject, findProject } from './statements/projects.ts';
export type { Project } from './statements/projects.ts';
export { listRegistries, removeRegistry, setRegistry } from './statements/registries.ts';
export type { Registry } from './statements/registries.ts';
export { hostIdentity, requestFirstEngine, requestServiceRules, seedCatalog } from './statements/setup.ts';
export {
  backlog,
  environmentsById,
  findApiKey,
  loginsToShow,
  operationsById,
  placeEnvironment,
  shownCase,
  shownCases,
  shownEnvironments,
  shownOperations,
} from './statements/shown.ts';
export type {
  ApiKey,
  PageStart,
  Placement,
  ShownCase,
  ShownEnvironment,
  ShownOperation,
  ShownService,
  VisibleProjects,
} from './statements/shown.ts';
export {
  loadEngine,
  loadEngines,
  loadLogins,
  loadOperation,
  loadRegistry,
  loadServiceSecrets,
} from './statements/situation.ts';
export type { OperationInFull } from './statements/situation.ts';
export { noteEngineWaiting, noteHeld, noteWaiting, openJob, openJobs, requestEngineStart } from './statements/jobs.ts';
export type { EngineStartAnswer, OpenJob } from './statements/jobs.ts';
