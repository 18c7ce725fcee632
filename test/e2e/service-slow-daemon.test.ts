/**
 * A service's container on a daemon that freezes in the middle of a create, and on one whose disk is full. Where this machine
 * lets us start a daemon of our own, it really does; elsewhere a relay in front of the stack's does as if.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, expect, test } from '@jest/globals';
import Dockerode from 'dockerode';
import type { ActContext, ActResult } from '#effects';
import { performEffect } from '#effects';
import { markLabels } from '#kernel';
import { FreshConnections } from '#postgres';
import type { EffectSpecs } from '#protocol';
import { homeFromEnvironment, loadSettings } from '#settings';
import { DockerProxy, waitUntil } from '#testing';
import { PrivateDaemon } from './private-daemon.ts';

const LONG = 120_000;
const CREATE = /^POST \/containers\/create/;
const settings = loadSettings(homeFromEnvironment(process.env));

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, LONG);

/** A daemon, and a relay in front of it that the acts go through. */
interface Slow {
  readonly docker: Dockerode;
  readonly proxy: DockerProxy;
  readonly own: PrivateDaemon | undefined;
}

async function daemon(more: Parameters<typeof PrivateDaemon.start>[0] = {}): Promise<Slow> {
  const own = PrivateDaemon.possible() ? await PrivateDaemon.start(more) : undefined;
  if (own !== undefined) closing.push(() => own.remove());
  const dockerHost = own?.dockerHost ?? settings.dockerHost;
  const docker = new Dockerode({ socketPath: new URL(dockerHost).pathname, host: '' });
  const proxy = await DockerProxy.inFrontOf(dockerHost);
  closing.push(() => proxy.close());
  return { docker, proxy, own };
}

interface Try {
  readonly spec: EffectSpecs['container'];
  readonly token: string;
  act(deadlineMs: number): Promise<ActResult>;
  /** Containers and volumes of it, by their label. */
  count(): Promise<readonly [number, number]>;
}

async function service({ docker, proxy }: Slow): Promise<Try> {
  const [installation, environmentId, serviceId, token] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const imageId = await emptyImage(docker);
  const network = await docker.createNetwork({
    Name: `surefoot-${token}`,
    Internal: true,
    IPAM: { Config: [{ Subnet: '10.254.252.0/28' }] },
    Labels: markLabels({ installation, kind: 'network', id: environmentId, token }),
  });
  const filters = { label: [`surefoot.token=${token}`] };
  closing.push(async () => {
    for (const { Id } of await docker.listContainers({ all: true, filters }))
      await docker.getContainer(Id).remove({ force: true, v: true });
    await network.remove();
    await docker.getImage(imageId).remove();
  });
  const spec: EffectSpecs['container'] = {
    environmentId,
    serviceId,
    name: 'web',
    imageId,
    networkId: network.id,
    command: [],
    env: {},
    limits: { memoryBytes: 64 * 1024 * 1024, cpus: 1, pids: 64 },
    readOnly: false,
  };
  const context = (deadlineMs: number): ActContext => ({
    installation,
    hostId: 'local',
    dockerHost: proxy.dockerHost,
    inHand: { token, effectId: randomUUID(), attempt: 1, claimNumber: 1, resource: 'test' },
    secrets: {},
    connections: new FreshConnections({ statementTimeoutMs: 1_000 }),
    deadlineMs,
    progress: () => undefined,
    engine: {
      engineId: randomUUID(),
      name: 'none',
      folder: '',
      confFolder: '',
      socketFolder: '',
      adminPasswordFile: '',
      caFile: '',
      caKeyFile: '',
      port: 1,
      identity: '',
    },
  });
  return {
    spec,
    token,
    act: (deadlineMs) => performEffect(context(deadlineMs), 'container', spec),
    count: async () => {
      const { Volumes } = await docker.listVolumes({ filters });
      return [(await docker.listContainers({ all: true, filters })).length, Volumes.length];
    },
  };
}

/** @returns its id */
async function emptyImage(docker: Dockerode): Promise<string> {
  // Two blocks of nothing: an archive without a file.
  const archive = Readable.from([Buffer.alloc(1024)]);
  let progress = '';
  const stream = await docker.importImage(archive, { fromSrc: '-', changes: 'ENTRYPOINT ["/nothing"]' });
  for await (const chunk of stream) progress += chunk.toString();
  return (JSON.parse(progress) as { status: string }).status;
}

test(
  'B057: a daemon that freezes while it is asked for a container leaves the outcome unknown, and makes one and never two',
  async () => {
    const slow = await daemon();
    const { proxy, own } = slow;
    const web = await service(slow);
    let creates = 0;
    proxy.rule((call) => {
      if (!CREATE.test(call)) return 'pass';
      creates += 1;
      own?.freeze();
      return own === undefined ? 'hold' : 'pass';
    });
    expect(await web.act(3_000)).toMatchObject({ outcome: 'unknown', reason: { code: 'daemon_lost' } });
    // Once more, while the daemon still says nothing at all: not even looked at, so nothing was changed.
    if (own !== undefined)
      expect(await web.act(1_000)).toMatchObject({ outcome: 'refused', reason: { code: 'daemon_lost' } });
    expect(creates).toBe(1);
    proxy.rule(() => 'pass');
    own?.thaw();
    proxy.release();
    // Its client has long been gone, and the daemon goes on all the same.
    await waitUntil('the container is there', async () => (await web.count())[0] === 1);
    const first = await web.act(10_000);
    expect(first).toMatchObject({
      outcome: 'applied',
      facts: { containerId: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(await web.act(10_000)).toEqual(first);
    expect(await web.count()).toEqual([1, 1]);
  },
  LONG,
);

test(
  'a disk that is full is told as such, and nothing is left; with space again the same is done',
  async () => {
    const slow = await daemon({ diskMegabytes: 24 });
    const { proxy, own } = slow;
    const web = await service(slow);
    const filling = join(own?.dataFolder ?? '', 'filling');
    if (own === undefined) proxy.once(CREATE, { status: 500, body: { message: 'mkdir /x: no space left on device' } });
    else fillUp(filling);
    expect(await web.act(10_000)).toMatchObject({
      outcome: 'refused',
      reason: { code: 'disk_full', message: expect.stringContaining('no space left on device') },
    });
    expect(await web.count()).toEqual([0, 0]);
    if (own !== undefined) execFileSync('rm', [filling]);
    expect(await web.act(10_000)).toMatchObject({ outcome: 'applied' });
    expect(await web.count()).toEqual([1, 1]);
  },
  LONG,
);

/** Up to the last byte. */
function fillUp(path: string): void {
  try {
    execFileSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=4096'], { stdio: 'ignore' });
  } catch {
    // It ends when there is no more space.
    return;
  }
  throw new Error('the disk did not get full');
}
