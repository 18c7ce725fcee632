export { inStackContainer } from './stack-container.ts';
export { TcpProxy } from './tcp-proxy.ts';
export { waitUntil } from './wait-until.ts';
export { InstallationUnderTest } from './installation.ts';
export type { EnvironmentView, LoginView, OperationView } from './installation.ts';
export { nodeChild, sourceUrl } from './node-child.ts';
export type { NodeChild } from './node-child.ts';
export { SHORT_WRITE_BYTES, watchedFileCalls } from './file-calls.ts';
export type { CallFault } from './file-calls.ts';
