export { inStackContainer } from './stack-container.ts';
export { TcpProxy } from './tcp-proxy.ts';
export { waitUntil } from './wait-until.ts';
export { InstallationUnderTest } from './installation.ts';
export type { EnvironmentView, LoginView, OperationView } from './installation.ts';
