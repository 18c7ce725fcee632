import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseBlock, contains, layOut, overlaps, parseRoutes, parseSubnet } from './address-block.mjs';
import { closedBridges, concerns, parseAddresses } from './machine-network.mjs';

const ID = '6b0c5d0e-9d53-4c1f-8f5c-0a8f3c0a7a11';

test('an installation finds the same block again, and another one when it is taken', () => {
  const first = chooseBlock(ID, []);
  assert.equal(chooseBlock(ID, []), first);
  const second = chooseBlock(ID, [parseSubnet(first)]);
  assert.ok(!overlaps(parseSubnet(first), parseSubnet(second)));
  assert.ok(contains(parseSubnet('10.64.0.0/10'), parseSubnet(second)));
});

test('a single address in a block makes it taken, and so does a network around it', () => {
  const block = chooseBlock(ID, []);
  const inside = layOut(block).pool.replace(/\/.*/, '/32');
  assert.notEqual(chooseBlock(ID, [parseSubnet(inside)]), block);
  assert.throws(() => chooseBlock(ID, [parseSubnet('10.0.0.0/8')]), /10\.64\.0\.0\/10 is in use/);
});

test('the parts of a block lie in it and apart from each other', () => {
  const block = chooseBlock(ID, []);
  const { bridge, stack, unnamed, pool, bridgeAddress } = layOut(block);
  const parts = [bridge, stack, unnamed, pool].map(parseSubnet);
  for (const part of parts) {
    assert.ok(contains(parseSubnet(block), part));
    assert.equal(parts.filter((other) => overlaps(part, other)).length, 1);
  }
  assert.ok(contains(parseSubnet(bridge), parseSubnet(bridgeAddress)));
});

test("the kernel's routes are read, without the one to everywhere", () => {
  const table = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
    '',
  ].join('\n');
  assert.deepEqual(parseRoutes(table), [parseSubnet('192.0.2.0/24')]);
});

test('interfaces are read with their networks', () => {
  const text =
    '1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n12: sf-1a2b3c4d    inet 10.71.64.1/24 scope global\n';
  assert.deepEqual(parseAddresses(text), [
    { name: 'lo', subnet: '127.0.0.1/8' },
    { name: 'sf-1a2b3c4d', subnet: '10.71.64.1/24' },
  ]);
});

test('a bridge without an address is known by what Docker drops around it', () => {
  const saved = [
    '-A FORWARD -i br-db1e6aa56249 -o br-db1e6aa56249 -j ACCEPT',
    '-A DOCKER-ISOLATION-STAGE-1 ! -s 10.71.96.16/28 -o br-db1e6aa56249 -j DROP',
    '-A DOCKER-ISOLATION-STAGE-1 ! -d 10.71.96.16/28 -i br-db1e6aa56249 -j DROP',
    '-A DOCKER-ISOLATION-STAGE-1 ! -d 10.72.96.16/28 -i br-000000000001 -j DROP',
    '-A DOCKER-ISOLATION-STAGE-1 ! -d 10.71.96.16/28 -i eth0 -j DROP',
    '-A FORWARD -d 10.71.96.17/32 -i br-000000000002 -j DROP',
  ];
  assert.deepEqual([...new Set(closedBridges(saved, '10.71.64.0/18'))], ['br-db1e6aa56249']);
});

const rules = /** @type {const} */ ([
  ['-A POSTROUTING -s 10.71.64.0/24 ! -o sf-1a2b3c4d -j MASQUERADE', true],
  ['-A DOCKER -d 127.0.0.1/32 ! -i br-5 -p tcp -m tcp --dport 16644 -j DNAT --to-destination 10.71.65.2:5432', true],
  ['-A FORWARD -o sf-1a2b3c4d -j DOCKER', true],
  ['-A FORWARD -o sf-1a2b3c4 -j DOCKER', false],
  ['-A FORWARD -s 10.0.0.0/8 -j ACCEPT', false],
  ['-A FORWARD -d 0.0.0.0/0 -j DROP', false],
  ['-A POSTROUTING -s 10.72.64.0/24 ! -o br-7 -j MASQUERADE', false],
  ['-A FORWARD -j DOCKER-USER', false],
]);

for (const [rule, ours] of rules) {
  test(`${ours ? 'ours' : "someone else's"}: ${rule}`, () => {
    assert.equal(concerns(rule, '10.71.64.0/18', ['sf-1a2b3c4d']), ours);
  });
}
