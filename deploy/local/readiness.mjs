import { connect } from 'node:net';
import { waitUntil } from './running-process.mjs';

/**
 * Whether catalog and broker answer in their own protocol, on the port that everybody will use. Quicker than their
 * health checks, whose interval is made for watching, and surer than an open port: Docker's proxy accepts connections
 * before the server behind it does.
 */

const ANSWER_MS = 2_000;

/**
 * PostgreSQL asks for a password once it takes connections, and else says why not.
 *
 * @param {number} port
 * @returns {Promise<boolean>}
 */
export async function catalogAnswers(port) {
  const parameters = Buffer.from('user\0surefoot\0database\0surefoot\0\0', 'latin1');
  const startup = Buffer.alloc(8);
  startup.writeInt32BE(startup.length + parameters.length, 0);
  startup.writeInt32BE(196_608, 4); // protocol 3.0
  return (await firstByte(port, Buffer.concat([startup, parameters]))) === 'R';
}

/**
 * RabbitMQ greets a client of its protocol with a method frame (type 1), and one of another protocol with `AMQP`.
 *
 * @param {number} port
 * @returns {Promise<boolean>}
 */
export async function brokerAnswers(port) {
  return (await firstByte(port, Buffer.from('AMQP\0\0\x09\x01', 'latin1'))) === '\x01';
}

/**
 * @param {number} port
 * @param {Buffer} greeting
 * @returns {Promise<string | undefined>}
 */
function firstByte(port, greeting) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    /** @param {string} [byte] */
    const end = (byte) => {
      socket.destroy();
      resolve(byte);
    };
    socket.setTimeout(ANSWER_MS, () => end());
    socket.on('connect', () => socket.write(greeting));
    socket.on('data', (data) => end(data.toString('latin1', 0, 1)));
    socket.on('error', () => end());
    socket.on('close', () => end());
  });
}

/**
 * @param {(port: number) => Promise<boolean>} answers
 * @param {number} port
 * @param {number} deadlineMs
 */
export function untilAnswers(answers, port, deadlineMs) {
  return waitUntil(() => answers(port), deadlineMs, 150);
}
