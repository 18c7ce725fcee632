export { createLogger, withFields } from './logger.ts';
export type { LoggerOptions } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { Labels, Metrics } from './metrics.ts';
