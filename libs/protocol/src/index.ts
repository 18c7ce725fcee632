export { compareAge } from './age.ts';
export type { AgeRecord } from './age.ts';
export { effectTraits, identitiesAfter, isEffectKind, registeringEffects } from './effects.ts';
export type {
  EffectClass,
  EffectFacts,
  EffectKind,
  EffectSpecs,
  Identities,
  NetworkOwner,
  PlannedEffect,
  RoleOids,
} from './effects.ts';
export { isOperationKind, nextStep, opensTo, OPERATIONS, roleIncludes, ROLES } from './operations.ts';
export type { Door, OperationKind, Role } from './operations.ts';
export { pinDifferences } from './pin.ts';
export type { Pin } from './pin.ts';
export type { EffectRecord, EngineSubject, EnvironmentSubject, Situation, Step } from './plans.ts';
export { RECORD_VERSION } from './records.ts';
export type { Receipt, Witness } from './records.ts';
export { decideClaim, decideReceipt, isRepeated } from './recovery.ts';
export type { ClaimDecision, ReceiptDecision } from './recovery.ts';
export {
  CA_FILE,
  DATABASE_URL_FILE,
  ENGINE_ALIAS,
  ENGINE_PORT,
  registryOf,
  SERVICE_FILES,
  SERVICE_FOLDER,
  SERVICES_MAX,
  SERVICES_PROFILE,
} from './services.ts';
export type { HealthCheck, Service, ServiceIdentities, ServiceLimits, ServicePlace, ServiceSpec } from './services.ts';
export { ENGINE_STATES, ENVIRONMENT_STATES, isOpen, nextOperationState, OPERATION_STATES } from './states.ts';
export type { EngineState, EnvironmentState, OperationEvent, OperationState } from './states.ts';
