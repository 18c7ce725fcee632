/**
 * Whether the servers answer. The first bytes of each protocol are enough, and need neither a client nor a password; what
 * is behind them the gateway and the worker say themselves.
 */
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { failed, ok, type Finding } from './finding.ts';

const ANSWER_TIMEOUT_MS = 3_000;

export async function checkDocker(dockerHost: string): Promise<Finding> {
  const { status, body } = await httpGet(dockerHost, '/version');
  if (status !== 200) return failed('docker', `${dockerHost} answers with status ${status}`);
  const { Version } = JSON.parse(body) as { Version?: string };
  return ok('docker', `version ${Version ?? 'unknown'} at ${dockerHost}`);
}

function httpGet(dockerHost: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  const { protocol, hostname, port, pathname } = new URL(dockerHost);
  const target = protocol === 'unix:' ? { socketPath: pathname } : { host: hostname, port };
  return new Promise((resolve, reject) => {
    const sent = request({ ...target, path, timeout: ANSWER_TIMEOUT_MS }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    sent.on('timeout', () => sent.destroy(new Error(`${dockerHost} does not answer`)));
    sent.on('error', reject);
    sent.end();
  });
}

/** PostgreSQL manual, "Message Formats": SSLRequest is answered with one letter. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

export async function checkCatalog(catalogUrl: string): Promise<Finding> {
  const { hostname, port } = new URL(catalogUrl);
  const answer = await firstBytes(hostname, Number(port === '' ? 5432 : port), SSL_REQUEST, 1);
  const letter = answer.toString('latin1');
  if (letter !== 'S' && letter !== 'N') return failed('catalog', `${hostname}:${port} is not a PostgreSQL server`);
  return ok('catalog', `PostgreSQL answers at ${hostname}:${port}`);
}

/** AMQP 0-9-1, "Protocol header"; the answer begins with a method frame on channel 0. */
const AMQP_HEADER = Buffer.from('AMQP\0\0\x09\x01', 'latin1');

export async function checkBroker(brokerUrl: string): Promise<Finding> {
  const { hostname, port } = new URL(brokerUrl);
  const answer = await firstBytes(hostname, Number(port === '' ? 5672 : port), AMQP_HEADER, 11);
  // Frame type 1, channel 0, then after the length: class 10, method 10 (`connection.start`).
  const isStart = answer[0] === 1 && answer.readUInt16BE(1) === 0 && answer.readUInt32BE(7) === 0x000a000a;
  if (!isStart) return failed('broker', `${hostname}:${port} is not an AMQP broker`);
  return ok('broker', `AMQP answers at ${hostname}:${port}`);
}

function firstBytes(host: string, port: number, request_: Buffer, count: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host, port });
    let answer = Buffer.alloc(0);
    const end = (done: () => void): void => {
      socket.destroy();
      done();
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => end(() => reject(new Error(`${host}:${port} does not answer`))));
    socket.on('error', (error) => end(() => reject(error)));
    socket.on('close', () => reject(new Error(`${host}:${port} closes the connection`)));
    socket.on('connect', () => socket.write(request_));
    socket.on('data', (bytes) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length >= count) end(() => resolve(answer));
    });
  });
}
