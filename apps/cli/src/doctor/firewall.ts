/**
 * The rules by which this host is closed to the containers of the installation. `npm start` sets them; another program on
 * the machine, or a restart of it, may have taken them away since, while containers run on.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Settings } from '#settings';
import { failed, ok, warning, type Finding } from './finding.ts';

/** Where deploy/local/host-firewall.mjs puts a rule each, with a comment that names the installation. */
const PLACES = [
  { table: 'filter', chain: 'INPUT' },
  { table: 'filter', chain: 'DOCKER-USER' },
  { table: 'mangle', chain: 'POSTROUTING' },
] as const;

type Table = (typeof PLACES)[number]['table'];

/** @param rulesOf the rules of a table as iptables-save prints them; undefined where we may not or cannot look */
export async function checkFirewall(
  { installation, servicePorts }: Settings,
  rulesOf: (table: Table) => Promise<string | undefined> = savedRules,
): Promise<Finding> {
  if (servicePorts === undefined) return ok('firewall', 'services have no published ports here');
  const open: string[] = [];
  for (const { table, chain } of PLACES) {
    const rules = await rulesOf(table);
    if (rules === undefined) return warning('firewall', 'only root can see whether this host is closed to services');
    const isThere = rules
      .split('\n')
      .some((rule) => rule.startsWith(`-A ${chain} `) && rule.includes(`surefoot-${installation} `));
    if (!isThere) open.push(`${table} ${chain}`);
  }
  if (open.length === 0) return ok('firewall', 'this host is closed to services');
  return failed('firewall', `services can reach this host: no rule of ours in ${open.join(', ')}; run npm start`);
}

async function savedRules(table: Table): Promise<string | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  return (await promisify(execFile)('iptables-save', ['-t', table])).stdout;
}
