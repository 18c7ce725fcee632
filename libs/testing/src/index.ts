export { TcpProxy } from './tcp-proxy.ts';
export { waitUntil } from './wait-until.ts';
