/**
 * Asks a server, over TLS, how a user would have to log in. Being asked for SCRAM proves that a rule of the loaded rule file
 * matches this user: whether the user exists plays no part, since PostgreSQL asks an unknown one just the same. Any error
 * proves nothing but that it was not asked.
 *
 * The protocol is spoken here in a few bytes (manual, "Message Flow" and "Message Formats"), because a client library only
 * tells whether a login worked.
 */
import type { Socket } from 'node:net';
import { createConnection } from 'node:net';
import { connect as startTls } from 'node:tls';

export interface ScramQuestion {
  /** On loopback. */
  readonly port: number;
  readonly user: string;
  /** PEM. */
  readonly ca: string;
  /** SHA-256 of the certificate that the server must show, as Node writes it: then it is this engine and no other. */
  readonly fingerprint: string;
}

export type ScramAnswer =
  | { readonly asked: true }
  /** @property sqlState set when it was the server that refused */
  | { readonly asked: false; readonly why: string; readonly sqlState?: string };

/** The certificate's name for the engine on its own host. */
const SERVER_NAME = 'localhost';
const PROTOCOL_3_0 = 196_608;
const SSL_REQUEST = 80_877_103;
const AUTHENTICATION_SASL = 10;
const ORDERLY_END_MS = 1_000;

export function askForScram(question: ScramQuestion, timeoutMs: number): Promise<ScramAnswer> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port: question.port });
    let connection: Socket = socket;
    const answer = (given: ScramAnswer): void => {
      clearTimeout(timer);
      // An orderly end: after a reset the server writes a line to its log for every question.
      connection.end();
      setTimeout(() => socket.destroy(), ORDERLY_END_MS).unref();
      resolve(given);
    };
    const no = (why: string): void => {
      answer({ asked: false, why });
    };
    const timer = setTimeout(() => {
      no(`no answer within ${timeoutMs} ms`);
    }, timeoutMs);
    const watch = (watched: Socket): void => {
      watched.on('error', (error: Error) => {
        no(error.message);
      });
      watched.on('close', () => {
        no('the connection was closed');
      });
    };
    watch(socket);
    socket.once('connect', () => socket.write(message(SSL_REQUEST)));
    socket.once('data', (reply) => {
      if (reply.toString('latin1') !== 'S') {
        no('the server offers no TLS');
        return;
      }
      const secure = startTls({ socket, ca: question.ca, servername: SERVER_NAME });
      connection = secure;
      watch(secure);
      secure.once('secureConnect', () => {
        if (secure.getPeerCertificate().fingerprint256 === question.fingerprint)
          secure.write(message(PROTOCOL_3_0, `user\0${question.user}\0database\0postgres\0\0`));
        else no('another server answers on this port');
      });
      let received = Buffer.alloc(0);
      secure.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const given = readAnswer(received);
        if (given !== undefined) answer(given);
      });
    });
  });
}

/** A first message has no type byte: length, code, content. */
function message(code: number, content = ''): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + Buffer.byteLength(content), 0);
  head.writeInt32BE(code, 4);
  return Buffer.concat([head, Buffer.from(content)]);
}

/** @returns undefined while the message is not whole */
function readAnswer(received: Buffer): ScramAnswer | undefined {
  if (received.length < 5 || received.length < 1 + received.readInt32BE(1)) return undefined;
  const type = String.fromCharCode(received[0] ?? 0);
  const body = received.subarray(5, 1 + received.readInt32BE(1));
  if (
    type === 'R' &&
    body.readInt32BE(0) === AUTHENTICATION_SASL &&
    body.toString('latin1', 4).includes('SCRAM-SHA-256')
  )
    return { asked: true };
  if (type !== 'E') return { asked: false, why: `the server answered with a message of type ${type}` };
  const fields = body.toString('utf8').split('\0');
  const field = (name: string): string | undefined => fields.find((text) => text.startsWith(name))?.slice(1);
  const sqlState = field('C');
  return { asked: false, why: field('M') ?? 'the server refused', ...(sqlState === undefined ? {} : { sqlState }) };
}
