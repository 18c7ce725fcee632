/**
 * Which names a service can ask for, on a daemon whose own resolver is on loopback: there the daemon's embedded one would
 * ask it from the host's namespace, for containers on closed networks as well (CVE-2024-29018). Such a daemon can only be
 * one of our own; elsewhere it is the stack's, whose resolver is the machine's.
 */
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { afterEach, expect, test } from '@jest/globals';
import type Dockerode from 'dockerode';
import type { ActContext } from '#effects';
import { performEffect } from '#effects';
import { markLabels } from '#kernel';
import { FreshConnections } from '#postgres';
import type { EffectSpecs } from '#protocol';
import { homeFromEnvironment, loadSettings } from '#settings';
import { facts } from './effects-world.ts';
import { docker as stackDocker } from './engine-world.ts';
import { PrivateDaemon } from './private-daemon.ts';

const LONG = 180_000;
/** A resolver of the machine's own would be on another one of this network. */
const NAMESERVER = '127.0.0.77';
const settings = loadSettings(homeFromEnvironment(process.env));

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, LONG);

/** Answers nothing. @returns the names that it was asked for */
async function nameserver(): Promise<readonly string[]> {
  const asked: string[] = [];
  const server = createSocket('udp4', (query) => void asked.push(nameIn(query)));
  await new Promise<void>((resolve) => server.bind(53, NAMESERVER, resolve));
  closing.push(() => new Promise<void>((resolve) => server.close(resolve)));
  return asked;
}

/** RFC 1035, 4.1.2: behind a header of twelve bytes, each part of the name behind its length. */
function nameIn(query: Buffer): string {
  const parts: string[] = [];
  for (let at = 12; query[at] !== undefined && query[at] !== 0; at += 1 + query[at]!)
    parts.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
  return parts.join('.');
}

async function inside(container: Dockerode.Container, script: string): Promise<readonly string[]> {
  const exec = await container.exec({ Cmd: ['bash', '-c', script], AttachStdout: true });
  const said: Buffer[] = [];
  for await (const chunk of await exec.start({})) said.push((chunk as Buffer).subarray(8));
  return Buffer.concat(said)
    .toString()
    .split('\n')
    .filter((line) => line !== '');
}

test(
  'a service finds its neighbours by their names, and of any other name nobody outside is ever asked',
  async () => {
    const own = PrivateDaemon.possible();
    const asked = own ? await nameserver() : [];
    const daemon = own ? await PrivateDaemon.start({ nameserver: NAMESERVER }) : undefined;
    if (daemon !== undefined) closing.push(() => daemon.remove());
    const docker = daemon?.docker ?? stackDocker;
    if (daemon !== undefined) {
      const loading = await docker.loadImage(await stackDocker.getImage(settings.engineImage).get());
      for await (const _chunk of loading);
    }
    const { Id: imageId } = await docker.getImage(settings.engineImage).inspect();
    const [installation, environmentId] = [randomUUID(), randomUUID()];
    const network = await docker.createNetwork({
      Name: `surefoot-${randomUUID()}`,
      Internal: true,
      IPAM: { Config: [{ Subnet: '10.254.251.0/28' }] },
      Labels: markLabels({ installation, kind: 'network', id: environmentId, token: randomUUID() }),
    });
    closing.push(() => network.remove());

    const up = async (name: string): Promise<Dockerode.Container> => {
      const serviceId = randomUUID();
      const spec: EffectSpecs['container'] = {
        environmentId,
        serviceId,
        name,
        imageId,
        networkId: network.id,
        command: ['sleep', 'infinity'],
        env: {},
        limits: { memoryBytes: 64 * 1024 * 1024, cpus: 1, pids: 64 },
        readOnly: false,
      };
      const context: ActContext = {
        installation,
        hostId: 'local',
        dockerHost: daemon?.dockerHost ?? settings.dockerHost,
        inHand: { token: randomUUID(), effectId: randomUUID(), attempt: 1, claimNumber: 1, resource: 'test' },
        secrets: {},
        connections: new FreshConnections({ statementTimeoutMs: 1_000 }),
        deadlineMs: 60_000,
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
      };
      const { containerId } = facts(await performEffect(context, 'container', spec)) as { containerId: string };
      const container = docker.getContainer(containerId);
      closing.push(() => container.remove({ force: true, v: true }));
      await container.start();
      return container;
    };
    const [web, api] = [await up('web'), await up('api')];
    expect((await web.inspect()).HostConfig).toMatchObject({
      Dns: ['127.0.0.1'],
      DnsOptions: ['timeout:1', 'attempts:1'],
    });
    for (const container of [web, api])
      expect(
        await inside(container, 'for name in web api; do getent hosts "$name" >/dev/null && echo "$name"; done'),
      ).toEqual(['web', 'api']);
    const lookUp = 'start=$SECONDS; getent hosts a-secret.example.com && echo found; echo $((SECONDS - start))';
    const [seconds, ...more] = await inside(web, lookUp);
    expect(more).toEqual([]);
    expect(Number(seconds)).toBeLessThan(8);
    expect(asked).toEqual([]);
  },
  LONG,
);
