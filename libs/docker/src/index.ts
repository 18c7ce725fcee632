export { containerDifferences } from './container-request.ts';
export type { ContainerRequest } from './container-request.ts';
export { Daemon } from './daemon.ts';
export type { ContainerInfo, ImageInfo, NetworkDetail, NetworkInfo } from './daemon.ts';
export { DaemonError, isDaemonError } from './errors.ts';
export type { PullProgress, RegistryCredentials } from './pull.ts';
export { freeSubnet, isWithin, routedNetworks } from './subnets.ts';
