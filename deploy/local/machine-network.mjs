import { contains, layOut, overlaps, parseSubnet, takenRanges } from './address-block.mjs';
import { lastWords, tryCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';

/**
 * Bridges and firewall rules of a private daemon, in the network that it shares with everything else on the machine.
 * What is ours is told by its addresses: only our daemon makes interfaces in the installation's block.
 */

const TABLES = /** @type {const} */ (['nat', 'filter', 'mangle']);

/**
 * A daemon only creates its default bridge by itself when that has the default name, which is the machine's.
 *
 * @param {string} name
 * @param {string} block
 */
export async function ensureBridge(name, block) {
  const { bridge, bridgeAddress } = layOut(block);
  const found = await tryCommand('ip', ['link', 'show', name]);
  if (found.code !== 0) {
    if ((await takenRanges()).some((range) => overlaps(range, parseSubnet(bridge)))) {
      throw new SetupFailure(
        `the addresses ${bridge} of this installation's containers are now in use on this machine`,
        'end what uses them (ip route shows it; often a VPN), or start over with npm run reset.',
      );
    }
    await ip(['link', 'add', 'name', name, 'type', 'bridge']);
  }
  await ip(['address', 'replace', bridgeAddress, 'dev', name]);
  await ip(['link', 'set', name, 'up']);
}

/** @param {readonly string[]} args */
async function ip(args) {
  const result = await tryCommand('ip', args);
  if (result.code === 0) return;
  throw new SetupFailure(
    `ip ${args.join(' ')} failed: ${lastWords(result)}`,
    'set DOCKER_HOST to a Docker daemon that you start yourself.',
  );
}

/**
 * Every starting dockerd flushes the chains that all daemons on a machine share, and with them the rules of the
 * others. So what vanished while ours started, and was not ours, is put back.
 *
 * @param {string} block
 * @param {() => Promise<void>} start
 */
export async function withForeignRulesKept(block, start) {
  const before = await foreignRules(block);
  try {
    await start();
  } finally {
    for (const table of TABLES) {
      const now = new Set(await rulesOf(table));
      // In reverse, since each goes to the head of its chain.
      for (const rule of before[table].filter((line) => !now.has(line)).reverse()) {
        await iptables(table, rule.replace(/^-A/, '-I'));
      }
    }
  }
}

/** @param {string} block */
async function foreignRules(block) {
  const interfaces = await ourInterfaces(block);
  const foreign = async (/** @type {string} */ table) =>
    (await rulesOf(table)).filter((rule) => !concerns(rule, block, interfaces));
  return { nat: await foreign('nat'), filter: await foreign('filter'), mangle: await foreign('mangle') };
}

/**
 * @param {string} table
 * @returns {Promise<string[]>} its rules as `-A CHAIN …`
 */
async function rulesOf(table) {
  const saved = await tryCommand('iptables-save', ['-t', table]);
  return saved.stdout.split('\n').filter((line) => line.startsWith('-A '));
}

/** @param {string} table @param {string} rule */
async function iptables(table, rule) {
  const args = rule.match(/"[^"]*"|\S+/g)?.map((word) => word.replace(/^"|"$/g, '')) ?? [];
  await tryCommand('iptables', ['--wait', '-t', table, ...args]);
}

/**
 * @param {string} rule as iptables-save prints it
 * @param {string} block
 * @param {readonly string[]} interfaces
 */
export function concerns(rule, block, interfaces) {
  const range = parseSubnet(block);
  const words = rule.split(' ');
  return words.some((word, index) => {
    if (['-i', '-o'].includes(words[index - 1] ?? '')) return interfaces.includes(word);
    const address = /^(\d+\.\d+\.\d+\.\d+(?:\/\d+)?)(?::\d+)?$/.exec(word)?.[1];
    return address !== undefined && contains(range, parseSubnet(address));
  });
}

/**
 * @param {string} block
 * @returns {Promise<string[]>}
 */
async function ourInterfaces(block) {
  // Not os.networkInterfaces(): it leaves out a bridge that no running container is attached to.
  const shown = await tryCommand('ip', ['-4', '-oneline', 'address', 'show']);
  const addressed = parseAddresses(shown.stdout)
    .filter(({ subnet }) => contains(parseSubnet(block), parseSubnet(subnet)))
    .map(({ name }) => name);
  return [...new Set([...addressed, ...closedBridges(await rulesOf('filter'), block)])];
}

/**
 * Bridges of environments' networks. This machine has no address on them, but Docker drops with the addresses of each what
 * would come in or get out, and names its bridge there.
 *
 * @param {readonly string[]} rules as iptables-save prints them
 * @param {string} block
 */
export function closedBridges(rules, block) {
  return rules.flatMap((rule) => {
    const found = /^-A DOCKER-ISOLATION-STAGE-1 ! -[sd] (\S+) -[io] (br-[0-9a-f]{12}) -j DROP$/.exec(rule);
    const [, subnet, bridge] = found ?? [];
    if (subnet === undefined || bridge === undefined) return [];
    return contains(parseSubnet(block), parseSubnet(subnet)) ? [bridge] : [];
  });
}

/**
 * @param {string} text what `ip -4 -oneline address show` prints
 */
export function parseAddresses(text) {
  return [...text.matchAll(/^\d+: (\S+)\s+inet (\S+)/gm)].map(([, name = '', subnet = '']) => ({ name, subnet }));
}

/**
 * Removes the bridges and rules that a stopped daemon left.
 *
 * @param {string} block
 */
export async function removeNetworkTraces(block) {
  const interfaces = await ourInterfaces(block);
  for (const table of TABLES) {
    const rules = (await rulesOf(table)).filter((rule) => concerns(rule, block, interfaces));
    for (const rule of rules) await iptables(table, rule.replace(/^-A/, '-D'));
  }
  for (const name of interfaces) await tryCommand('ip', ['link', 'delete', name]);
}
