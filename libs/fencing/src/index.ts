export { CONTROL_DATABASE, guardedBatch, guardedBatchIn, guardedStatement, Refusal } from './guarded-batch.ts';
export type { Change, Guard, GuardedResult } from './guarded-batch.ts';
export { assertLocalFileSystem, HostLockRefused, takeHostLock } from './host-lock.ts';
export type { HostLock } from './host-lock.ts';
export { readEngineAge, readKnownTokens } from './control-reads.ts';
