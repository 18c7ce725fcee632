export { createLogger } from './logger.ts';
export { createMetrics } from './metrics.ts';
