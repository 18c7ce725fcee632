import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layOut } from './address-block.mjs';
import { firewallRules } from './host-firewall.mjs';
import { concerns } from './machine-network.mjs';

const installation = { id: '6b0c5d0e-9d53-4c1f-8f5c-0a8f3c0a7a11', block: '10.71.64.0/18' };
const { pool } = layOut(installation.block);
const rules = firewallRules(installation);

test('each rule is about new connections from the pool of this installation alone, and says whose it is', () => {
  for (const { match } of rules) {
    const text = match.join(' ');
    assert.match(text, new RegExp(`-s ${pool} -m conntrack ! --ctstate RELATED,ESTABLISHED`));
    assert.match(text, /--comment surefoot-6b0c5d0e-9d53-4c1f-8f5c-0a8f3c0a7a11 -j (REJECT|DROP)/);
  }
});

test('nothing that stays on one network is forbidden, and nothing that the machine sends itself', () => {
  for (const { chain, match } of rules) {
    const text = match.join(' ');
    if (chain === 'INPUT') assert.match(text, /^! -i lo /);
    else assert.match(text, /-m physdev ! --physdev-is-bridged/);
    if (chain === 'POSTROUTING') assert.match(text, /! --src-type LOCAL/);
  }
});

test('a private daemon that is stopped or started takes them for its own', () => {
  for (const { chain, match } of rules) assert.ok(concerns(`-A ${chain} ${match.join(' ')}`, installation.block, []));
});
