/** Free networks out of a pool. Pure; IPv4 only, since the networks of engines are. */

interface Range {
  readonly first: number;
  readonly last: number;
}

/** A CIDR as numbers; undefined for anything that is not IPv4. Host bits are cut off, as interfaces are listed with them. */
function range(cidr: string): Range | undefined {
  const found = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
  if (found === null) return undefined;
  const [, a = 0, b = 0, c = 0, d = 0, length = 0] = found.map(Number);
  if ([a, b, c, d].some((octet) => octet > 255) || length > 32) return undefined;
  const size = 2 ** (32 - length);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  const first = address - (address % size);
  return { first, last: first + size - 1 };
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}

export interface Subnet {
  readonly subnet: string;
  /** Its first address, which the bridge has. */
  readonly gateway: string;
}

/**
 * The first network of `length` bits in the pool that overlaps nothing.
 * @param pool a CIDR
 * @param taken CIDRs; what is not IPv4 cannot overlap
 * @returns undefined when the pool is used up
 */
export function freeSubnet(pool: string, taken: readonly string[], length: number): Subnet | undefined {
  const whole = range(pool);
  if (whole === undefined) throw new TypeError(`${JSON.stringify(pool)} is not an IPv4 network`);
  const size = 2 ** (32 - length);
  const ranges = taken.flatMap((cidr) => range(cidr) ?? []);
  let first = whole.first;
  while (first + size - 1 <= whole.last) {
    const last = first + size - 1;
    const start = first;
    const overlaps = ranges.filter((other) => other.first <= last && other.last >= start);
    if (overlaps.length === 0) return { subnet: `${dotted(first)}/${length}`, gateway: dotted(first + 1) };
    const past = Math.max(...overlaps.map((other) => other.last)) + 1;
    first = Math.ceil(past / size) * size;
  }
  return undefined;
}

/** Whether a network lies wholly in the pool. What is not IPv4 does not. */
export function isWithin(pool: string, cidr: string): boolean {
  const [whole, part] = [range(pool), range(cidr)];
  return whole !== undefined && part !== undefined && part.first >= whole.first && part.last <= whole.last;
}

/**
 * Destinations in the kernel's routing table as `/proc/net/route` shows them (proc(5): little-endian hexadecimal), without
 * the default route, which overlaps everything and means nothing here.
 */
export function routedNetworks(table: string): readonly string[] {
  const networks: string[] = [];
  for (const line of table.split('\n').slice(1)) {
    const [, destination = '', , , , , , mask = ''] = line.split('\t');
    if (!/^[0-9A-F]{8}$/.test(destination) || !/^[0-9A-F]{8}$/.test(mask)) continue;
    const length = littleEndian(mask).toString(2).replaceAll('0', '').length;
    if (length > 0) networks.push(`${dotted(littleEndian(destination))}/${length}`);
  }
  return networks;
}

function littleEndian(hexadecimal: string): number {
  return parseInt(hexadecimal.match(/../g)?.reverse().join('') ?? '', 16);
}
