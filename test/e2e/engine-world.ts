/** Engines of a test's own, on the stack's daemon: made by the same plan and acts as any other, and gone afterwards. */
import { randomUUID, webcrypto } from 'node:crypto';
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import Dockerode from 'dockerode';
import type { ActContext, ActResult, EnginePlace } from '#effects';
import { performEffect } from '#effects';
import type { JsonObject } from '#kernel';
import { FreshConnections } from '#postgres';
import type { EffectKind, EffectRecord, EffectSpecs, EngineSubject, Identities } from '#protocol';
import { identitiesAfter, nextStep } from '#protocol';
import { homeFromEnvironment, loadSettings } from '#settings';

const settings = loadSettings(homeFromEnvironment(process.env));
export const docker = new Dockerode({ socketPath: new URL(settings.dockerHost).pathname, host: '' });

export interface EngineWorld {
  readonly installation: string;
  readonly place: EnginePlace;
  readonly dockerHost: string;
  identities: Identities;
  readonly effects: EffectRecord[];
  /** One act under a token of its own, or under a given one. */
  perform<K extends EffectKind>(
    kind: K,
    spec: EffectSpecs[K],
    more?: Partial<ActContext> & { token?: string },
  ): Promise<ActResult>;
  /** Follows the plan of `engine.create`, as far as `until` (not included). @throws when an act is not applied */
  create(until?: EffectKind): Promise<void>;
  facts(kind: EffectKind): JsonObject;
  /** What the container said so far. */
  log(): Promise<string>;
  /** To a process of the server, by the id that the server knows it under. */
  signal(pid: number, name: 'STOP' | 'CONT'): Promise<void>;
}

const folders: string[] = [];
const installations: string[] = [];

export async function engineWorld(more: { image?: string; pool?: string } = {}): Promise<EngineWorld> {
  // Short: paths of Unix sockets end at 107 bytes. Not the folder for temporary files, which may be out of the daemon's sight.
  const home = mkdtempSync('/var/tmp/engine-');
  folders.push(home);
  const installation = randomUUID();
  installations.push(installation);
  const engineId = randomUUID();
  const folder = join(home, 'host', 'engines', engineId);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const place: EnginePlace = {
    engineId,
    name: 'test',
    folder,
    confFolder: join(folder, 'conf'),
    socketFolder: join(folder, 'socket'),
    adminPasswordFile: join(folder, 'admin-password'),
    caFile: join(home, 'ca.pem'),
    caKeyFile: join(home, 'ca.key'),
    port: await freePort(),
    identity: randomUUID(),
  };
  await makeAuthority(place);
  const connections = new FreshConnections({ statementTimeoutMs: 30_000 });
  const world: EngineWorld = {
    installation,
    place,
    dockerHost: settings.dockerHost,
    identities: {},
    effects: [],
    async perform(kind, spec, { token = randomUUID(), ...context } = {}) {
      return performEffect(
        {
          installation,
          hostId: 'local',
          engine: place,
          dockerHost: settings.dockerHost,
          inHand: { token, effectId: randomUUID(), attempt: 1, claimNumber: 1, resource: 'engine test' },
          secrets: {},
          connections,
          deadlineMs: 60_000,
          progress: () => undefined,
          ...context,
        },
        kind,
        spec,
      );
    },
    async create(until) {
      for (;;) {
        const subject: EngineSubject = {
          type: 'engine',
          id: engineId,
          name: place.name,
          image: more.image ?? settings.engineImage,
          port: place.port,
          networkPool: more.pool ?? settings.networkPool,
          identities: world.identities,
        };
        const step = nextStep('engine.create', {
          subject,
          effects: world.effects,
          cancelRequested: false,
          superseded: false,
        });
        if (step.do !== 'effect' || step.effect.kind === until) return;
        const { kind, spec } = step.effect;
        const result = await world.perform(kind, spec);
        if (result.outcome !== 'applied') throw new Error(`${kind}: ${JSON.stringify(result)}`);
        world.effects.push({ kind, outcome: 'applied', facts: result.facts });
        world.identities = identitiesAfter(world.identities, kind, result.facts);
      }
    },
    facts: (kind) => world.effects.findLast((effect) => effect.kind === kind)?.facts ?? {},
    async log() {
      const container = docker.getContainer(world.identities.containerId ?? '');
      return (await container.logs({ stdout: true, stderr: true, follow: false })).toString('utf8');
    },
    async signal(pid, name) {
      const container = docker.getContainer(world.identities.containerId ?? '');
      const exec = await container.exec({ Cmd: ['sh', '-c', `kill -${name} ${pid}`], AttachStderr: true });
      const output = await exec.start({});
      const said: Buffer[] = [];
      for await (const chunk of output) said.push(chunk as Buffer);
      const { ExitCode } = await exec.inspect();
      if (ExitCode !== 0) throw new Error(`kill -${name} ${pid}: ${Buffer.concat(said).toString('utf8')}`);
    },
  };
  return world;
}

/** Everything that the worlds of this file made, by its labels. */
export async function removeWorlds(): Promise<void> {
  for (const installation of installations.splice(0)) {
    const filters = { label: [`surefoot.installation=${installation}`] };
    for (const { Id } of await docker.listContainers({ all: true, filters }))
      await docker.getContainer(Id).remove({ force: true, v: true });
    for (const { Name } of (await docker.listVolumes({ filters })).Volumes) await docker.getVolume(Name).remove();
    for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
}

/** Somebody who is not root: the user of this run, if he is that already. */
export function plainUser(): { readonly uid: number; readonly gid: number } {
  const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0];
  return uid === 0 ? { uid: 12_345, gid: 12_345 } : { uid, gid };
}

/** Runs something with another user's rights, who besides his own group has the one that the daemon's socket has. */
export async function runAs<T>(
  world: EngineWorld,
  user: { readonly uid: number; readonly gid: number },
  work: () => Promise<T>,
): Promise<T> {
  const { getegid, geteuid, getgroups, setegid, seteuid, setgroups } = process;
  if (!getegid || !geteuid || !getgroups || !setegid || !seteuid || !setgroups) throw new Error('not a Unix');
  const before = { uid: geteuid(), gid: getegid(), groups: getgroups() };
  if (before.uid === user.uid) return work();
  giveAway(join(world.place.folder, '..', '..', '..'), user);
  setgroups([user.gid, statSync(new URL(world.dockerHost).pathname).gid]);
  setegid(user.gid);
  seteuid(user.uid);
  try {
    return await work();
  } finally {
    seteuid(before.uid);
    setegid(before.gid);
    setgroups(before.groups);
  }
}

function giveAway(path: string, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  chownSync(path, uid, gid);
  if (statSync(path).isDirectory()) for (const name of readdirSync(path)) giveAway(join(path, name), { uid, gid });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
  });
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

async function makeAuthority(place: EnginePlace): Promise<void> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test authority',
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 86_400_000 * 90),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  writeFileSync(place.caFile, certificate.toString('pem'), { mode: 0o600 });
  writeFileSync(place.caKeyFile, x509.PemConverter.encode(key, 'PRIVATE KEY'), { mode: 0o600 });
}
