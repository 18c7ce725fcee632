import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { markLabels } from '#kernel';
import { FreshConnections } from '#postgres';
import type { ActContext } from './contract.ts';
import { act as image } from './image/act.ts';
import { act as joinNetwork } from './join-network/act.ts';
import { act as network } from './network/act.ts';
import { act as removeNetwork } from './remove-network/act.ts';
import { act as removeVolume } from './remove-volume/act.ts';
import { act as volume } from './volume/act.ts';

const installation = 'f4a74b75-a7ed-45dc-bc37-d0f153ab228f';
const engineId = '7d4f2d0e-9d43-4b0b-8a55-4f1f6f0d6f11';
const token = '0b1c9c1e-6a55-4c2f-9a35-5c8e0f9a1c77';
const made = { Name: `surefoot-${token}`, Labels: markLabels({ installation, kind: 'volume', id: engineId, token }) };

let folder: string;
const closing: (() => void)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'daemon-'));
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  rmSync(folder, { recursive: true });
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A daemon that answers each method as it is told. */
function daemonThat(answers: { readonly GET?: Answer; readonly POST?: Answer; readonly DELETE?: Answer }): void {
  const server = createServer((request, response) => {
    answers[request.method as 'GET']?.(request, response);
  });
  server.listen(join(folder, 'docker.sock'));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
}

function says(status: number, body: object): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}

const hangsUp: Answer = (request) => request.socket.destroy();

function context(deadlineMs: number): ActContext {
  return {
    installation,
    hostId: 'local',
    dockerHost: `unix://${join(folder, 'docker.sock')}`,
    inHand: { token, effectId: engineId, attempt: 1, claimNumber: 1, resource: 'engine test' },
    secrets: {},
    connections: new FreshConnections({ statementTimeoutMs: 1_000 }),
    deadlineMs,
    progress: () => undefined,
    engine: {
      engineId,
      name: 'test',
      folder,
      confFolder: folder,
      socketFolder: folder,
      adminPasswordFile: '',
      caFile: '',
      caKeyFile: '',
      port: 1,
      identity: engineId,
    },
  };
}

describe('an act at the daemon', () => {
  test('whose change got no answer is unknown, and is not done a second time', async () => {
    let asked = 0;
    daemonThat({
      POST: (request, response) => {
        asked += 1;
        hangsUp(request, response);
      },
    });
    expect(await volume(context(2_000), { engineId })).toMatchObject({
      outcome: 'unknown',
      reason: { code: 'daemon_lost' },
    });
    expect(asked).toBe(1);
  });

  describe('that only looked', () => {
    const removal = (deadlineMs: number): Promise<unknown> =>
      removeVolume(context(deadlineMs), { engineId, volumeName: made.Name });
    const owner = { type: 'engine', id: engineId } as const;
    const create = (): Promise<unknown> => network(context(1_000), { owner, pool: '10.213.0.0/16' });
    const result = (outcome: 'refused' | 'unknown', code: string): object => ({ outcome, reason: { code } });
    const failing = says(500, { message: 'not now' });

    test.each([
      ['breaks off', hangsUp, 'daemon_lost'],
      ['fails', failing, 'daemon_failed'],
      ['says nothing', (): void => undefined, 'daemon_lost'],
      ['is away', undefined, 'daemon_unreachable'],
    ])('at a daemon that %s has not removed, and is not refused: it is to be made again', async (_what, GET, code) => {
      if (GET !== undefined) daemonThat({ GET });
      const membership = { environmentId: engineId, networkId: 'n', engineContainerId: 'c' };
      expect(
        await Promise.all([
          removal(1_000),
          joinNetwork(context(1_000), membership),
          image(context(1_000), { image: 'app:1' }),
          create(),
        ]),
      ).toMatchObject([
        ...Array.from({ length: 3 }, () => result('unknown', code)),
        // What must not be made twice was not made at all, and that is known.
        result('refused', code),
      ]);
    });

    test.each([
      ['broke off', hangsUp],
      ['failed', failing],
    ])('looks again at a daemon that %s', async (_what, first) => {
      let looks = 0;
      daemonThat({
        GET: (request, response) => {
          looks += 1;
          if (looks < 3) first(request, response);
          else if (request.url === '/volumes') says(200, { Volumes: [] })(request, response);
          else says(404, { message: 'no such volume' })(request, response);
        },
      });
      expect(await removal(20_000)).toEqual({ outcome: 'applied', facts: { alreadyAbsent: true } });
      expect(looks).toBeGreaterThanOrEqual(4);
    });

    test('after its change was answered looks again, and makes nothing twice that is there', async () => {
      let there: object[] = [];
      let looks = 0;
      let asked = 0;
      daemonThat({
        GET: (request, response) => {
          looks += 1;
          (looks === 2 ? hangsUp : says(200, there))(request, response);
        },
        POST: (request, response) => {
          asked += 1;
          there = [
            {
              Id: 'n',
              Name: `surefoot-${token}`,
              Labels: markLabels({ installation, kind: 'network', id: engineId, token }),
              IPAM: { Config: [{ Subnet: '10.213.0.0/28', Gateway: '10.213.0.1' }] },
              Internal: false,
              Options: {},
            },
          ];
          says(201, { Id: 'n' })(request, response);
        },
      });
      expect(await network(context(20_000), { owner, pool: '10.213.0.0/16' })).toMatchObject({ outcome: 'applied' });
      expect(asked).toBe(1);
    });
  });

  test('whose change was answered, and that could not look at it any more, is unknown', async () => {
    daemonThat({ POST: says(201, made), GET: hangsUp });
    expect(await volume(context(2_000), { engineId })).toMatchObject({
      outcome: 'unknown',
      reason: { code: 'daemon_lost' },
    });
  });

  test('whose change the daemon tried and failed at is unknown', async () => {
    daemonThat({ POST: says(500, { message: 'no space left on device' }) });
    expect(await volume(context(2_000), { engineId })).toEqual({
      outcome: 'unknown',
      reason: { code: 'daemon_failed', message: 'no space left on device' },
    });
  });

  test('waits for a daemon that is not there yet', async () => {
    const acting = volume(context(20_000), { engineId });
    setTimeout(() => {
      daemonThat({ POST: says(201, made), GET: says(200, made) });
    }, 300);
    expect(await acting).toEqual({ outcome: 'applied', facts: { volumeName: made.Name } });
  });

  describe('a network', () => {
    const pool = '10.213.0.0/16';
    const owner = { type: 'engine', id: engineId } as const;
    const listed = {
      Id: 'n',
      Name: `surefoot-${token}`,
      Labels: markLabels({ installation, kind: 'network', id: engineId, token }),
      IPAM: { Config: [{ Subnet: '10.213.0.0/28', Gateway: '10.213.0.1' }] },
      Internal: false,
      Options: {},
    };
    const later =
      (milliseconds: number, answer: Answer): Answer =>
      (request, response) =>
        void setTimeout(() => answer(request, response), milliseconds);

    test('that was made while the time ran out is found, and not told as refused', async () => {
      let created = false;
      daemonThat({
        GET: (request, response) => later(created ? 0 : 1_200, says(200, created ? [listed] : []))(request, response),
        POST: later(1_200, (request, response) => {
          created = true;
          says(201, { Id: 'n' })(request, response);
        }),
      });
      // Half of it is for acting: each of the two answers comes within that, and the second after it.
      expect(await network(context(4_000), { owner, pool })).toEqual({
        outcome: 'applied',
        facts: { networkId: 'n', subnet: '10.213.0.0/28', localCidrs: ['10.213.0.1/32'] },
      });
    });

    test('whose name is taken and that is not listed is unknown, and is not asked for again and again', async () => {
      let asked = 0;
      let looks = 0;
      daemonThat({
        GET: (request, response) => {
          looks += 1;
          says(200, [])(request, response);
        },
        POST: (request, response) => {
          asked += 1;
          says(409, { message: `network with name ${listed.Name} already exists` })(request, response);
        },
      });
      expect(await network(context(2_000), { owner, pool })).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'network_not_listed' },
      });
      expect(asked).toBe(1);
      expect(looks).toBeLessThan(10);
    });

    test('of which every try met an overlap is refused', async () => {
      daemonThat({
        GET: says(200, []),
        POST: says(403, { message: 'invalid pool request: Pool overlaps with other one on this address space' }),
      });
      expect(await network(context(10_000), { owner, pool })).toMatchObject({
        outcome: 'refused',
        reason: { code: 'network_pool_exhausted' },
      });
    });
  });

  describe('a network that the daemon failed to make', () => {
    const owner = { type: 'environment', id: engineId } as const;
    const failure = 'unable to insert jump to DOCKER-ISOLATION-STAGE-1 rule';
    const listed = {
      Id: 'n',
      Name: `surefoot-${token}`,
      Labels: markLabels({ installation, kind: 'network', id: engineId, token }),
      IPAM: { Config: [{ Subnet: '10.213.0.0/28', Gateway: '10.213.0.1' }] },
      Internal: true,
      Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
    };
    const ask = (): Promise<unknown> => network(context(10_000), { owner, pool: '10.213.0.0/16' });

    test('and that is not there is refused: the answer has ended the call', async () => {
      let asked = 0;
      daemonThat({
        GET: says(200, []),
        POST: (request, response) => {
          asked += 1;
          says(500, { message: failure })(request, response);
        },
      });
      expect(await ask()).toEqual({
        outcome: 'refused',
        reason: { code: 'daemon_failed', message: `the network was not made: ${failure}` },
      });
      expect(asked).toBe(1);
    });

    test('and that is there all the same is applied', async () => {
      let created = false;
      daemonThat({
        GET: (request, response) => says(200, created ? [listed] : [])(request, response),
        POST: (request, response) => {
          created = true;
          says(500, { message: failure })(request, response);
        },
      });
      expect(await ask()).toEqual({ outcome: 'applied', facts: { networkId: 'n', subnet: '10.213.0.0/28' } });
    });

    test('and that came out open is removed, and refused', async () => {
      const asked: string[] = [];
      let there: object[] = [];
      daemonThat({
        GET: (request, response) => says(200, there)(request, response),
        POST: (request, response) => {
          there = [{ ...listed, Internal: false, Options: {} }];
          says(500, { message: failure })(request, response);
        },
        DELETE: (request, response) => {
          asked.push(request.url ?? '');
          there = [];
          says(204, {})(request, response);
        },
      });
      expect(await ask()).toMatchObject({ outcome: 'refused', reason: { code: 'network_differs' } });
      expect(asked).toEqual(['/networks/n']);
    });

    test('and that came out open and stays is unknown', async () => {
      daemonThat({
        GET: says(200, [{ ...listed, Internal: false }]),
        DELETE: says(500, { message: 'failed as well' }),
      });
      expect(await ask()).toMatchObject({ outcome: 'unknown', reason: { code: 'network_differs' } });
    });
  });

  describe('an engine that joins a network', () => {
    const spec = { environmentId: engineId, networkId: 'n', engineContainerId: 'c' };
    const staleEndpoint = 'endpoint with name surefoot-engine-x already exists in network surefoot-y';

    /** One engine and one network; what is asked of them is told, and a connection fails with what is in `failures`. */
    function daemonWith(failures: string[], left = false): { readonly asked: string[] } {
      const state = { asked: [] as string[], joined: false, left };
      daemonThat({
        GET: (request, response) => {
          const inspected = {
            Id: 'n',
            Name: 'surefoot-y',
            Labels: markLabels({ installation, kind: 'network', id: engineId, token }),
            IPAM: { Config: [] },
            Internal: true,
            Options: null,
            Containers: {
              ...(state.joined ? { c: { Name: 'surefoot-engine-x' } } : {}),
              ...(state.left ? { 'ep-1': { Name: 'surefoot-engine-x' } } : {}),
            },
          };
          const container = {
            Id: 'c',
            Name: '/surefoot-engine-x',
            State: { Running: true, Restarting: false },
            Config: { Labels: markLabels({ installation, kind: 'engine', id: engineId, token }) },
            NetworkSettings: {
              Networks: state.joined
                ? { 'surefoot-y': { NetworkID: 'n', Aliases: ['db'], IPAddress: '10.0.0.2' } }
                : {},
            },
          };
          says(200, request.url?.startsWith('/networks') === true ? inspected : container)(request, response);
        },
        POST: (request, response) => {
          const text: Buffer[] = [];
          request.on('data', (chunk: Buffer) => text.push(chunk));
          request.on('end', () => {
            const { Container, Force } = JSON.parse(Buffer.concat(text).toString()) as Record<
              string,
              string | boolean | undefined
            >;
            state.asked.push(`${request.url?.split('/').pop() ?? ''} ${Container} ${Force ?? ''}`.trim());
            if (request.url?.endsWith('/disconnect') === true) {
              state.joined = state.left = false;
              says(200, {})(request, response);
              return;
            }
            const failure = failures.shift();
            if (failure === undefined) state.joined = true;
            says(failure === undefined ? 200 : 500, { message: failure })(request, response);
          });
        },
      });
      return state;
    }

    test('B071: and whose endpoint was left there is disconnected by its id, with force, and then tried once more', async () => {
      const { asked } = daemonWith([staleEndpoint]);
      expect(await joinNetwork(context(10_000), spec)).toEqual({ outcome: 'applied', facts: { address: '10.0.0.2' } });
      expect(asked).toEqual(['connect c', 'disconnect c true', 'connect c']);
    });

    test('B071: and whose endpoint is seen to be left there is disconnected first', async () => {
      const { asked } = daemonWith([], true);
      expect(await joinNetwork(context(10_000), spec)).toMatchObject({ outcome: 'applied' });
      expect(asked).toEqual(['disconnect c true', 'connect c']);
    });

    test('B071: and whose endpoint cannot be got rid of is refused', async () => {
      const { asked } = daemonWith([staleEndpoint, staleEndpoint]);
      expect(await joinNetwork(context(10_000), spec)).toMatchObject({
        outcome: 'refused',
        reason: { code: 'not_joined', message: expect.stringContaining(staleEndpoint) },
      });
      expect(asked).toEqual(['connect c', 'disconnect c true', 'connect c']);
    });

    test('and that the daemon failed to connect is refused: it is not in it', async () => {
      const { asked } = daemonWith(['no available IPv4 addresses on this network']);
      expect(await joinNetwork(context(10_000), spec)).toMatchObject({
        outcome: 'refused',
        reason: { code: 'not_joined', message: expect.stringContaining('no available IPv4 addresses') },
      });
      expect(asked).toEqual(['connect c']);
    });
  });

  describe('B071: a network that is removed, with an endpoint left in it', () => {
    const owner = { type: 'environment', id: engineId } as const;
    const labels = markLabels({ installation, kind: 'network', id: engineId, token });

    /** One network, with one endpoint that no container has, of a name that a container may have all the same. */
    function daemonWith(container?: object): { readonly asked: string[] } {
      const asked: string[] = [];
      let [left, there] = [true, true];
      const networkOf = (): object => ({
        Id: 'n',
        Name: 'surefoot-y',
        Labels: labels,
        IPAM: { Config: [] },
        Internal: true,
        Options: null,
        Containers: left ? { 'ep-1': { Name: 'surefoot-engine-x' } } : {},
      });
      const listed = { Id: 'c', Labels: {}, State: 'running', Ports: [], ...container };
      const found = (url: string): object | undefined => {
        if (url === '/networks') return there ? [networkOf()] : [];
        if (url.startsWith('/networks/')) return there ? networkOf() : undefined;
        if (url.startsWith('/containers/json')) return container === undefined ? [] : [listed];
        return container === undefined
          ? undefined
          : { Id: 'c', Name: '/surefoot-engine-x', Config: listed, NetworkSettings: { Networks: {} } };
      };
      daemonThat({
        GET: (request, response) => {
          const answer = found(request.url ?? '');
          says(answer === undefined ? 404 : 200, answer ?? { message: 'no such thing' })(request, response);
        },
        POST: (request, response) => {
          const text: Buffer[] = [];
          request.on('data', (chunk: Buffer) => text.push(chunk));
          request.on('end', () => {
            const { Container, Force } = JSON.parse(Buffer.concat(text).toString()) as Record<string, unknown>;
            asked.push(`${request.url} ${String(Container)} ${String(Force)}`);
            left = false;
            says(200, {})(request, response);
          });
        },
        DELETE: (request, response) => {
          asked.push(`delete ${request.url}`);
          there = left;
          says(left ? 403 : 204, { message: 'network surefoot-y has active endpoints' })(request, response);
        },
      });
      return { asked };
    }
    const remove = (deadlineMs: number): Promise<unknown> =>
      removeNetwork(context(deadlineMs), { owner, networkId: 'n' });

    test.each([
      ['of our engine', { Labels: markLabels({ installation, kind: 'engine', id: engineId, token }) }, 'c'],
      ['of a container that is gone', undefined, 'surefoot-engine-x'],
    ])('%s loses that, and goes', async (_whose, container, named) => {
      const { asked } = daemonWith(container);
      expect(await remove(10_000)).toEqual({ outcome: 'applied', facts: {} });
      expect(asked).toEqual([`/networks/n/disconnect ${named} true`, 'delete /networks/n']);
    });

    test('of somebody’s container keeps it, and stays', async () => {
      const { asked } = daemonWith({ Labels: { theirs: 'yes' } });
      expect(await remove(1_000)).toMatchObject({
        outcome: 'refused',
        reason: { code: 'in_use', message: expect.stringContaining('in it: surefoot-engine-x') },
      });
      expect(asked.filter((call) => !call.startsWith('delete'))).toEqual([]);
    });
  });

  test('that pulls an image, and whose daemon ends in the middle of it, pulls it again', async () => {
    let pulls = 0;
    daemonThat({
      GET: (request, response) => {
        if (pulls < 2) says(404, { message: 'no such image' })(request, response);
        else says(200, { Id: 'sha256:1', RepoDigests: [] })(request, response);
      },
      POST: (request, response) => {
        pulls += 1;
        if (pulls === 1) hangsUp(request, response);
        else says(200, { status: 'Status: Downloaded newer image for app:1' })(request, response);
      },
    });
    expect(await image(context(20_000), { image: 'app:1' })).toMatchObject({ outcome: 'applied' });
    expect(pulls).toBe(2);
  });

  test('that pulls an image onto a disk that is full is refused, with that reason', async () => {
    daemonThat({
      GET: says(404, { message: 'no such image' }),
      POST: says(200, { error: 'failed to register layer: write /x: no space left on device' }),
    });
    expect(await image(context(10_000), { image: 'app:1' })).toEqual({
      outcome: 'refused',
      reason: { code: 'image_unavailable', message: expect.stringContaining('no space left on device') },
    });
  });

  test('B064: a removal that the daemon reports as done, of a thing that is still listed, is not done', async () => {
    daemonThat({
      DELETE: says(204, {}),
      GET: (request, response) => {
        says(200, request.url === '/volumes' ? { Volumes: [made] } : made)(request, response);
      },
    });
    expect(await removeVolume(context(1_000), { engineId, volumeName: made.Name })).toMatchObject({
      outcome: 'unknown',
      reason: { code: 'still_there' },
    });
  });
});
