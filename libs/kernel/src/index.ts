export { connectionUri } from './connection-uri.ts';
export { isUuid } from './ids.ts';
export {
  CLAIM_DEADLINE_MS,
  CONNECTION_LIMIT_DEFAULT,
  CONNECTION_LIMIT_MAX,
  DROP_ROLES_ROUNDS_MAX,
  EFFECT_DEADLINE_MAX_MS,
  EFFECT_DEADLINE_MS,
  ENVIRONMENT_NAME_MAX_BYTES,
  FREE_SPACE_MIN_BYTES,
  JOB_LOOK_INTERVAL_MS,
  PREFLIGHT_INTERRUPTIONS_MAX,
  REQUEST_BODY_MAX_BYTES,
  SERVICE_DEFAULTS,
  STALLED_RESUMES_MAX,
  STOP_GRACE_MS,
} from './limits.ts';
export {
  attemptDatabaseName,
  environmentNameFault,
  environmentNames,
  profileRole,
  quoteIdentifier,
  quoteLiteral,
  sentinelUser,
  TIERS,
  tombstoneDatabaseName,
  utf8Bytes,
} from './names.ts';
export type { EnvironmentNames, Tier } from './names.ts';
export { EFFECT_OUTCOMES } from './outcomes.ts';
export type { ActOutcome, EffectOutcome, Json, JsonObject, Reason, SettledOutcome, WriteAnswer } from './outcomes.ts';
export { Problem, PROBLEMS } from './problems.ts';
export type { ExitCode, FieldFault, ProblemCode } from './problems.ts';
export { markLabels, markText, parseMark } from './marks.ts';
export type { Mark } from './marks.ts';
export type { Logger, LogFields } from './logger.ts';
export {
  isLogTime,
  LOG_ANSWER_MAX_BYTES,
  LOG_ENDS,
  LOG_FOLLOW_MAX_MS,
  LOG_LINE_MAX_BYTES,
  LOG_STREAMS_MAX,
  LOG_STREAMS_PER_KEY_MAX,
  LOG_TAIL_DEFAULT,
  LOG_TAIL_MAX,
} from './service-logs.ts';
export type { LogEnd, LogLine, LogQuery } from './service-logs.ts';
