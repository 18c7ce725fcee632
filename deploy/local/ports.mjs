import { readFile, readdir, readlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';
import { SetupFailure } from './failure.mjs';

/**
 * Ports on loopback. They are chosen once and kept, so they lie below the range from which the kernel lends ports to
 * outgoing connections: a port from that range can be anybody's after the next restart.
 */
const LOWEST = 15_000;
const HIGHEST = 29_999;
const TRIES = 200;

/** @param {number} port @returns {Promise<boolean>} */
export function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    // On all addresses, since a server on any of them would be in the way.
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * @param {number} count
 * @param {object} [sources]
 * @param {(port: number) => Promise<boolean>} [sources.free]
 * @param {() => number} [sources.pick]
 * @returns {Promise<number[]>} distinct free ports
 */
export async function chooseFreePorts(count, { free = isFree, pick = () => randomInt(LOWEST, HIGHEST + 1) } = {}) {
  /** @type {Set<number>} */
  const chosen = new Set();
  for (let tries = 0; chosen.size < count && tries < TRIES; tries += 1) {
    const port = pick();
    if (!chosen.has(port) && (await free(port))) chosen.add(port);
  }
  if (chosen.size < count) throw new Error(`no ${count} free ports between ${LOWEST} and ${HIGHEST}`);
  return [...chosen];
}

/**
 * A port that was free when it was chosen may be someone else's by now. It is not ours to change silently: it stands in
 * addresses that people and programs hold.
 *
 * @param {number} port
 * @param {string} name of the line in local.env that names it
 */
export async function expectFree(port, name) {
  if (await isFree(port)) return;
  throw new SetupFailure(
    `port ${port}, which ${name} in local.env names, is taken by ${await listenerOn(port)}`,
    'end that program, then run this again; or write a free port into that line.',
  );
}

/**
 * Who listens on a port, for the message about a port that is taken.
 *
 * @param {number} port
 * @returns {Promise<string>} `process 123 (nginx)`, or `another program` where the kernel does not tell us
 */
export async function listenerOn(port) {
  const inodes = new Set();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const lines = (await readFile(table, 'utf8').catch(() => '')).split('\n').slice(1);
    for (const line of lines) {
      const fields = line.trim().split(/\s+/);
      const listens = fields[3] === '0A';
      if (listens && Number.parseInt(fields[1]?.split(':')[1] ?? '', 16) === port) inodes.add(`socket:[${fields[9]}]`);
    }
  }
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    // Descriptors of other users' processes, and of processes that end meanwhile, cannot be read.
    for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      if (!inodes.has(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))) continue;
      return `process ${pid} (${(await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '?')).trim()})`;
    }
  }
  return 'another program';
}
