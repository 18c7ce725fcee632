/** Networks as a rule holds them. */

/** What is wrong with a CIDR, as the sentence a caller reads; undefined when it is one. */
export function cidrFault(text: string): string | undefined {
  const [address = '', length, more] = text.split('/');
  if (length === undefined || more !== undefined || !/^\d{1,3}$/.test(length))
    return 'a network is written as address/length, such as 10.0.0.0/8';
  const bits = address.includes(':') ? ipv6Bits(address) : ipv4Bits(address);
  if (bits === undefined) return `${JSON.stringify(address)} is not an IP address`;
  if (Number(length) > bits.length) return `a length of ${length} is more than the address has bits`;
  // PostgreSQL's manual demands it, and a line that looks narrower than it is misleads its readers.
  if (bits.slice(Number(length)).includes('1')) return `bits to the right of /${length} must be zero`;
  return undefined;
}

function ipv4Bits(address: string): string | undefined {
  const parts = address.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255))
    return undefined;
  return parts.map((part) => Number(part).toString(2).padStart(8, '0')).join('');
}

/** Without a zone and without an embedded IPv4 address. */
function ipv6Bits(address: string): string | undefined {
  const halves = address.split('::');
  if (halves.length > 2) return undefined;
  const [left = [], right = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...left, ...Array.from({ length: missing }, () => '0'), ...right];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return groups.map((group) => parseInt(group, 16).toString(2).padStart(16, '0')).join('');
}
