export {
  CONTROL_DATABASE,
  guardedBatch,
  guardedBatchIn,
  guardedStatement,
  Refusal,
  SHORT_LOCK_WAIT_MS,
} from './guarded-batch.ts';
export type { Change, Guard, GuardedResult } from './guarded-batch.ts';
export { assertLocalFileSystem, HostLockRefused, takeHostLock } from './host-lock.ts';
export type { HostLock } from './host-lock.ts';
export { readEngineAge, readKnownTokens } from './control-reads.ts';
