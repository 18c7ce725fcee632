export { abandon, connectAdmin } from './connect.ts';
export type { AdminOptions, AdminPlace } from './connect.ts';
export { classifyEngineError, errorCode, errorSentence, isNotReadyYet } from './errors.ts';
export type { EngineError } from './errors.ts';
export { scramVerifier } from './scram.ts';
