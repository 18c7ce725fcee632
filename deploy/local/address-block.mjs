import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { SetupFailure } from './failure.mjs';

/**
 * The block of IPv4 addresses that an installation's containers live in: one /18 out of 10.64.0.0/10, so that its
 * networks neither use up Docker's own few pools nor lie over a network that this machine already reaches.
 *
 * Within the block: the first /24 for a private daemon's default bridge, the second for catalog and broker; the second
 * quarter is what a private daemon chooses from when somebody makes a network without naming addresses; the upper half
 * is for networks that the worker makes, which names them.
 */

/** @typedef {{ first: number, last: number }} Range inclusive, addresses as unsigned numbers */

const POOL = parseSubnet('10.64.0.0/10');
const BLOCK_BITS = 18;
const BLOCK_SIZE = 2 ** (32 - BLOCK_BITS);

/**
 * @param {string} installation where the search starts, so that installations rarely meet, even stopped ones
 * @param {readonly Range[]} taken
 */
export function chooseBlock(installation, taken) {
  const count = (POOL.last - POOL.first + 1) / BLOCK_SIZE;
  const start = createHash('sha256').update(installation).digest().readUInt32BE(0) % count;
  for (let step = 0; step < count; step += 1) {
    const first = POOL.first + ((start + step) % count) * BLOCK_SIZE;
    const block = { first, last: first + BLOCK_SIZE - 1 };
    if (!taken.some((range) => overlaps(range, block))) return `${formatAddress(first)}/${BLOCK_BITS}`;
  }
  throw new SetupFailure(
    'every part of 10.64.0.0/10 is in use on this machine, so there are no addresses for containers',
    'use a Docker daemon of your own (set DOCKER_HOST), or free some of those addresses.',
  );
}

/** @param {string} block */
export function layOut(block) {
  const { first } = parseSubnet(block);
  return {
    bridgeAddress: `${formatAddress(first + 1)}/24`,
    bridge: `${formatAddress(first)}/24`,
    stack: `${formatAddress(first + 256)}/24`,
    unnamed: `${formatAddress(first + BLOCK_SIZE / 4)}/${BLOCK_BITS + 2}`,
    pool: `${formatAddress(first + BLOCK_SIZE / 2)}/${BLOCK_BITS + 1}`,
  };
}

/** @param {Range} a @param {Range} b */
export function overlaps(a, b) {
  return a.first <= b.last && b.first <= a.last;
}

/** @param {Range} outer @param {Range} inner */
export function contains(outer, inner) {
  return outer.first <= inner.first && inner.last <= outer.last;
}

/**
 * @param {string} subnet `10.1.2.0/24`
 * @returns {Range}
 */
export function parseSubnet(subnet) {
  const [address = '', bits = '32'] = subnet.split('/');
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(parseAddress(address) / size) * size;
  return { first, last: first + size - 1 };
}

/** @param {string} address */
function parseAddress(address) {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** @param {number} address */
function formatAddress(address) {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}

/**
 * What this machine has addresses in or routes to, except the default route, which is a route to everything.
 *
 * @returns {Promise<Range[]>}
 */
export async function takenRanges() {
  const routes = await readFile('/proc/net/route', 'utf8').catch(() => '');
  const addresses = Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .flatMap(({ family, cidr }) => (family === 'IPv4' && cidr !== null ? [parseSubnet(cidr)] : []));
  return [...addresses, ...parseRoutes(routes)];
}

/**
 * @param {string} table the kernel's /proc/net/route: hexadecimal, in the byte order of the machine (little endian on
 *   all that we support)
 * @returns {Range[]}
 */
export function parseRoutes(table) {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .flatMap(([, destination, , , , , , mask]) => {
      if (destination === undefined || mask === undefined) return [];
      const [first, length] = [destination, mask].map((hex) => Buffer.from(hex.trim(), 'hex').readUInt32LE(0));
      if (first === undefined || length === undefined || length === 0) return [];
      return [{ first, last: first + (2 ** 32 - 1 - length) }];
    });
}
