export type { ContainerFile, FileFound } from './archive.ts';
export { containerDifferences } from './container-request.ts';
export type { ContainerRequest, PublishedPort } from './container-request.ts';
export { Daemon } from './daemon.ts';
export type { ContainerInfo, ContainerState, ImageInfo, NetworkDetail, NetworkInfo } from './daemon.ts';
export { DaemonError, isAnswer, isDaemonError } from './errors.ts';
export type { PullProgress } from './pull.ts';
export { freeSubnet, isWithin, routedNetworks } from './subnets.ts';
