/**
 * A small load generator: some connections that stay open, each with one request in flight, for a bounded time. It reads no
 * more of an answer than its status and length, so that on two cores the server, not this, is the limit.
 */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { once } from 'node:events';

export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const HEAD_END = '\r\n\r\n';
/** Longer than any answer takes; a server that stops answering ends the run. */
const SILENCE_MS = 10_000;

/** @returns answers per second; every one was a 2xx */
export async function requestsPerSecond(target: Target, connections: number, forMs: number): Promise<number> {
  const { port, path, headers } = target;
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const message = Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  try {
    const startedAt = performance.now();
    const counts = await Promise.all(sockets.map((socket) => ask(socket, message, startedAt + forMs)));
    const tookMs = performance.now() - startedAt;
    return (counts.reduce((sum, count) => sum + count, 0) / tookMs) * 1000;
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

/** One after the other until the time is over. @returns how many were answered */
function ask(socket: Socket, message: Buffer, until: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let answers = 0;
    let received = '';
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('the server does not answer')));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
      const head = received.indexOf(HEAD_END);
      if (head < 0) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head))?.[1];
      if (!/^HTTP\/1\.1 2\d\d /.test(received) || length === undefined) {
        reject(new Error(`not an answer to count: ${received.slice(0, 200)}`));
        return;
      }
      if (received.length < head + HEAD_END.length + Number(length)) return;
      received = '';
      answers += 1;
      if (performance.now() >= until) resolve(answers);
      else socket.write(message);
    });
    socket.write(message);
  });
}
