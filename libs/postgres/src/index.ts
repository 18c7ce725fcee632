export { scramVerifier } from './scram.ts';
