export { containerDifferences } from './container-request.ts';
export type { ContainerRequest } from './container-request.ts';
export { Daemon } from './daemon.ts';
export type { ContainerInfo, ImageInfo, NetworkInfo } from './daemon.ts';
export { DaemonError, isDaemonError } from './errors.ts';
export { freeSubnet, routedNetworks } from './subnets.ts';
