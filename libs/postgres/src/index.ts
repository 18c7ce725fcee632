export { abandon, connectAdmin, FreshConnections } from './connect.ts';
export type { AdminOptions, AdminPlace } from './connect.ts';
export { classifyEngineError, errorCode, errorSentence, isNotReadyYet } from './errors.ts';
export type { EngineError } from './errors.ts';
export { scramVerifier } from './scram.ts';
export type { Client } from 'pg';
export { connectLogin } from './login.ts';
export type { Login } from './login.ts';
