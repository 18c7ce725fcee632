import { layOut } from './address-block.mjs';
import { lastWords, tryCommand } from './command.mjs';

/**
 * Firewall rules that close this machine for the containers of an installation: engines and services, which all have
 * their addresses from its pool. They may answer whoever connects to them, and reach their neighbours on the same
 * network; they may not open connections to the machine itself, nor through it to another network.
 *
 * A container on an internal network has no way out in any case. One with published ports is on a network that has a
 * gateway, which is this machine, and runs code that somebody else wrote.
 *
 * @typedef {import('./installation.mjs').Installation} Installation
 * @typedef {{ table: 'filter' | 'mangle', chain: string, match: readonly string[] }} Rule
 */

/**
 * @param {Pick<Installation, 'id' | 'block'>} installation
 * @returns {readonly Rule[]}
 */
export function firewallRules({ id, block }) {
  const opening = ['-s', layOut(block).pool, '-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED'];
  // By this name `surefoot doctor` finds them, and whoever looks at the rules of the machine knows whose they are.
  const named = ['-m', 'comment', '--comment', `surefoot-${id}`];
  // What a bridge passes between its own ports comes by here too, while Docker has br_netfilter loaded.
  const routed = ['-m', 'physdev', '!', '--physdev-is-bridged'];
  // An answer at once: a service that tries to get out fails, and does not hang.
  const refused = ['-j', 'REJECT', '--reject-with', 'icmp-admin-prohibited'];
  return [
    { table: 'filter', chain: 'INPUT', match: ['!', '-i', 'lo', ...opening, ...named, ...refused] },
    // The one chain that Docker keeps ahead of the rules by which it lets each of its networks out, and never empties.
    { table: 'filter', chain: DOCKER_USER, match: [...opening, ...routed, ...named, ...refused] },
    // With each network that it makes, Docker takes that chain out of FORWARD and puts it back a moment later. What gets
    // through meanwhile ends here. (Not what this machine itself sends from its address on such a network.)
    {
      table: 'mangle',
      chain: 'POSTROUTING',
      match: [...opening, ...routed, '-m', 'addrtype', '!', '--src-type', 'LOCAL', ...named, '-j', 'DROP'],
    },
  ];
}

const DOCKER_USER = 'DOCKER-USER';

/**
 * Puts the rules in place where they are missing. May be repeated.
 *
 * @param {Pick<Installation, 'id' | 'block'>} installation
 * @returns {Promise<string | undefined>} why not; undefined when they are in force
 */
export async function closeHost(installation) {
  if (process.geteuid?.() !== 0) return 'only root can set firewall rules';
  for (const { table, chain, match } of firewallRules(installation)) {
    if ((await iptables(table, ['-C', chain, ...match])).code === 0) continue;
    // Before the first start of any Docker daemon there is none; where there is one, this fails and changes nothing.
    if (chain === DOCKER_USER) await iptables(table, ['-N', chain]);
    const added = await iptables(table, ['-I', chain, ...match]);
    if (added.missing) return 'the program iptables is missing';
    if (added.code !== 0) return `iptables refuses a rule: ${lastWords(added)}`;
  }
  return undefined;
}

/** @param {Pick<Installation, 'id' | 'block'>} installation */
export async function openHost(installation) {
  for (const { table, chain, match } of firewallRules(installation)) {
    // Two set-up commands that began at the same time may each have put it there.
    while ((await iptables(table, ['-D', chain, ...match])).code === 0);
  }
}

/** @param {Rule['table']} table @param {readonly string[]} args */
function iptables(table, args) {
  return tryCommand('iptables', ['--wait', '-t', table, ...args]);
}
