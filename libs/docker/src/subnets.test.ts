import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { freeSubnet, isWithin, routedNetworks } from './subnets.ts';

describe('free networks', () => {
  test('the first of an untouched pool, with its first address as gateway', () => {
    expect(freeSubnet('10.213.0.0/16', [], 28)).toEqual({ subnet: '10.213.0.0/28', gateway: '10.213.0.1' });
  });

  test('goes past what is taken, whatever its size, and listed with host bits as interfaces are', () => {
    const taken = ['10.213.0.5/32', '10.213.0.17/28', '10.213.1.0/24', '10.213.0.32/27', 'fd00::/8'];
    expect(freeSubnet('10.213.0.0/16', taken, 28)?.subnet).toBe('10.213.0.64/28');
    expect(freeSubnet('10.213.0.0/24', [...taken, '10.213.0.64/26'], 28)?.subnet).toBe('10.213.0.128/28');
  });

  test('B067: a pool that is used up has none', () => {
    expect(freeSubnet('10.213.0.0/16', ['10.0.0.0/8'], 28)).toBeUndefined();
    expect(freeSubnet('10.213.0.0/27', ['10.213.0.0/28', '10.213.0.16/28'], 28)).toBeUndefined();
    expect(freeSubnet('10.213.0.0/29', [], 28)).toBeUndefined();
  });

  test('a network is within a pool when it is so wholly', () => {
    expect(isWithin('10.213.0.0/16', '10.213.255.240/28')).toBe(true);
    expect(isWithin('10.213.0.0/16', '10.213.0.0/16')).toBe(true);
    expect(isWithin('10.213.0.0/16', '10.214.0.0/28')).toBe(false);
    expect(isWithin('10.213.0.0/16', '10.212.0.0/14')).toBe(false);
    expect(isWithin('10.213.0.0/16', 'fd00::/64')).toBe(false);
  });

  test('forty networks out of one pool overlap nothing and each other never', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 20, max: 32 })), { maxLength: 20 }),
        (others) => {
          const taken = others.map(([third, length]) => `10.213.${third}.7/${length}`);
          for (let count = 0; count < 40; count += 1) {
            const free = freeSubnet('10.213.0.0/16', taken, 28);
            if (free === undefined) return;
            expect(freeSubnet(free.subnet, taken, 28)?.subnet).toBe(free.subnet);
            taken.push(free.subnet);
            expect(freeSubnet(free.subnet, taken, 28)).toBeUndefined();
          }
        },
      ),
    );
  });

  test('reads routes as the kernel shows them, without the default route', () => {
    const table = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0',
      'tun0\t10D50A0A\t00000000\t0001\t0\t0\t0\tF0FFFFFF\t0\t0\t0',
      '',
    ].join('\n');
    expect(routedNetworks(table)).toEqual(['172.17.0.0/16', '10.10.213.16/28']);
  });
});
