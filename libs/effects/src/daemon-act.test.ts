import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { markLabels } from '#kernel';
import { FreshConnections } from '#postgres';
import type { ActContext } from './contract.ts';
import { act as network } from './network/act.ts';
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

  test('that asked for nothing but a look, and got no answer, has changed nothing', async () => {
    daemonThat({ GET: hangsUp });
    expect(await removeVolume(context(2_000), { engineId, volumeName: made.Name })).toMatchObject({
      outcome: 'refused',
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
