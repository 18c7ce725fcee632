/**
 * The worker, and every few times the Docker daemon, is killed with SIGKILL at random moments of creates with two services and
 * of their deletes, some of which come before the create has ended; then everything is deleted.
 *
 * The oracle is the daemon: what it said, as it happened, that it has made (its events, which it forgets when it is
 * started anew, are written down by a process of this test), what it lists at the end, what is mounted on this machine and
 * who listens. It does not read our records. SUREFOOT_SEED replays a run.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { OperationView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';
import type { ReceiptOnDisk } from './kills.ts';
import { hasEnded, hasWitness, killWorker, npmStart, random, receipts, table } from './kills.ts';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const KILLS = 20;
/** Each time after this many kills it is the daemon that is killed. */
const DAEMON_EVERY = 5;
/** Of creates that are deleted before they have ended. */
const OVERTAKEN_SHARE = 0.25;
/** See worker-killed.test.ts: recovery cannot fence and look yet. */
const BLOCKED_SHARE_MAX = 0.5;
/** What blocks when nobody wrote down how it ended; nothing else may. */
const BLOCKING = [
  ...['roles', 'database', 'interior', 'publish-database', 'rules', 'retire-database', 'drop-roles'],
  ...['network', 'port-network', 'container'],
];
const seed = Number(process.env['SUREFOOT_SEED'] ?? randomInt(2 ** 31));
const prefix = `services-${Date.now().toString(36)}-`;
const env = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
/** Of a private daemon. */
const runFolder = join('/run/surefoot', installation.setting('SUREFOOT_INSTALLATION').slice(0, 8));
const LABEL = `label=surefoot.installation=${installation.setting('SUREFOOT_INSTALLATION')}`;

/** The engine's image, whose own check is quick: so kills fall into everything, and not mostly into waiting. */
const CHECKED = `surefoot-test/checked:${prefix}`;
const SERVICES = [
  {
    name: 'steady',
    image: installation.setting('SUREFOOT_ENGINE_IMAGE'),
    // The image's entrypoint carries out what it does not know.
    command: ['bash', '-c', 'test -s /run/surefoot/database_url && exec sleep 3600'],
    secrets: { TOKEN: 'not told to anybody' },
  },
  {
    name: 'listening',
    image: CHECKED,
    command: ['bash', '-c', 'sleep 0.3; exec sleep 3600'],
    ports: [8080],
    limits: { memory: '64m' },
  },
];

interface DockerEvent {
  readonly Type: string;
  readonly Action: string;
  readonly Actor: { readonly ID: string; readonly Attributes: Readonly<Record<string, string>> };
  readonly timeNano: number;
}

const events: DockerEvent[] = [];
let listening = true;
let listener: ChildProcess | undefined;

/** Written down for as long as the test runs; what happens while the daemon is down cannot happen. */
async function writeDownEvents(): Promise<void> {
  while (listening) {
    const last = events.at(-1);
    const since = last === undefined ? [] : ['--since', String(last.timeNano / 1e9)];
    listener = spawn('docker', ['events', '--format', '{{json .}}', ...since], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for await (const line of createInterface({ input: listener.stdout! })) {
      const event = JSON.parse(line) as DockerEvent;
      const known = events.some(
        (one) => one.timeNano === event.timeNano && one.Actor.ID === event.Actor.ID && one.Action === event.Action,
      );
      if (!known) events.push(event);
    }
    await setTimeout(100);
  }
}

async function docker(...args: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await run('docker', args, { env });
  return stdout.split('\n').filter((line) => line !== '');
}

/** What carries the installation's label, but for what the engine is made of: `kind name id-of-its-owner`. */
async function objects(): Promise<readonly string[]> {
  const shown = '{{.Label "surefoot.kind"}} {{.Label "surefoot.id"}}';
  const all = await Promise.all([
    docker('ps', '-a', '--no-trunc', '--filter', LABEL, '--format', `container ${shown} {{.ID}}`),
    docker('network', 'ls', '--no-trunc', '--filter', LABEL, '--format', `network ${shown} {{.ID}}`),
    docker('volume', 'ls', '--filter', LABEL, '--format', `volume ${shown} {{.Name}}`),
  ]);
  return all.flat().sort();
}

/** Also what has no label: a volume that an image asks for, say. */
async function everyVolume(): Promise<readonly string[]> {
  return (await docker('volume', 'ls', '-q')).toSorted();
}

/** Of containers: overlays, shared memory, network namespaces. */
function mounts(): readonly string[] {
  const folders = [installation.home, runFolder].map((folder) => `${folder}/`);
  return readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => folders.some((folder) => path.startsWith(folder)))
    .sort();
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** The private daemon of this installation; undefined where the machine's own is used, which is not ours to end. */
function daemonPid(): number | undefined {
  const file = join(runFolder, 'dockerd.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : undefined;
}

async function endDaemon(): Promise<boolean> {
  const pid = daemonPid();
  if (pid === undefined) return false;
  process.kill(pid, 'SIGKILL');
  await waitUntil('the daemon is gone', () => hasEnded(pid), { intervalMs: 20 });
  return true;
}

interface ServiceShown {
  readonly name: string;
  readonly ports: readonly { readonly container: number; readonly host: number }[];
}

async function servicesOf(environmentId: string): Promise<readonly ServiceShown[]> {
  return ((await installation.environment(environmentId)) as unknown as { services: readonly ServiceShown[] }).services;
}

const createServices = (name: string): Promise<OperationView> => installation.create(name, { services: SERVICES });

async function timeOfCreate(): Promise<number> {
  const from = performance.now();
  const operation = await installation.ended((await createServices(`${prefix}undisturbed`)).id);
  expect(operation).toMatchObject({ state: 'succeeded' });
  const takesMs = performance.now() - from;
  await installation.ended((await installation.remove(operation.environmentId ?? '')).id);
  return takesMs;
}

async function buildChecked(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'checked-'));
  const lines = [`FROM ${installation.setting('SUREFOOT_ENGINE_IMAGE')}`, 'HEALTHCHECK --interval=300ms CMD true'];
  writeFileSync(join(folder, 'Dockerfile'), `${lines.join('\n')}\n`);
  await run('docker', ['build', '-q', '-t', CHECKED, folder], { env });
  rmSync(folder, { recursive: true });
}

let recording: Promise<void>;
beforeAll(async () => {
  await buildChecked();
  recording = writeDownEvents();
}, 60_000);
afterAll(async () => {
  listening = false;
  listener?.kill();
  await recording;
  // By force: what an operation that blocks had made may have it.
  await docker('image', 'rm', '--force', CHECKED);
});

test(`creates with two services, killed at ${KILLS} random moments, then deleted, leave nothing behind (seed ${seed}; B056, B064, B072)`, async () => {
  const next = random(seed);
  const before = { objects: await objects(), volumes: await everyVolume(), mounts: mounts() };
  const takesMs = await timeOfCreate();
  const operations: OperationView[] = [];
  const inHand: ReceiptOnDisk[] = [];
  const published: number[] = [];
  let daemonEnds = 0;
  let deletable: string | undefined;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const kept = new Set(receipts(installation).map(({ effectId }) => effectId));
    // A kill falls into the delete of the one before as well as into the create.
    const remove: OperationView[] = deletable === undefined ? [] : [await installation.remove(deletable)];
    deletable = undefined;
    const create = await createServices(`${prefix}${kill}`);
    // Now and then it is not wanted any more before it is there.
    const overtaken = next() < OVERTAKEN_SHARE;
    if (overtaken) remove.push(await installation.remove(create.environmentId ?? ''));
    await setTimeout(Math.floor(next() * takesMs));
    // Every so often it is the daemon that goes, in the middle of whatever it is doing; the worker stays.
    const ofDaemon = kill % DAEMON_EVERY === DAEMON_EVERY - 1 && (await endDaemon());
    if (ofDaemon) daemonEnds += 1;
    else await killWorker(installation);
    inHand.push(...receipts(installation).filter(({ effectId }) => !kept.has(effectId)));
    await npmStart(installation);
    const created = await installation.ended(create.id, 200_000);
    operations.push(created);
    // A delete waits behind what blocks.
    const waits = overtaken && created.state === 'blocked' ? 1 : 0;
    const others = remove.slice(0, remove.length - waits);
    operations.push(...(await Promise.all(others.map(({ id }) => installation.ended(id, 200_000)))));
    if (overtaken || created.state !== 'succeeded') continue;
    deletable = created.environmentId ?? '';
    const ports = (await servicesOf(deletable)).flatMap((service) => service.ports.map(({ host }) => host));
    expect(ports).toHaveLength(1);
    published.push(...ports);
  }
  if (deletable !== undefined) operations.push(await installation.ended((await installation.remove(deletable)).id));

  const left = receipts(installation);
  const title = `${KILLS} kills of creates with two services, the daemon ended ${daemonEnds} times, seed ${seed}`;
  process.stdout.write(table(title, inHand, new Set(left.map(({ effectId }) => effectId)), operations));
  expect(inHand.length).toBeGreaterThan(0);
  // A kill is never a failure of what was asked, and what blocks says why.
  expect(operations.filter(({ state }) => !['succeeded', 'cancelled', 'blocked'].includes(state))).toEqual([]);
  const blocked = operations.filter(({ state }) => state === 'blocked');
  expect(blocked.filter(({ reason }) => reason?.code === undefined)).toEqual([]);
  expect(blocked.length / KILLS).toBeLessThanOrEqual(BLOCKED_SHARE_MAX);
  const ours = left.filter(({ operationId }) => operations.some(({ id }) => id === operationId));
  expect(ours.map(({ operationId }) => operationId).sort()).toEqual(blocked.map(({ id }) => id).sort());
  expect(ours.filter(({ effectId }) => hasWitness(installation, effectId))).toEqual([]);
  expect(ours.filter(({ kind }) => !BLOCKING.includes(kind))).toEqual([]);

  expectNothingDouble(operations);
  await expectNothingLeft(before, blocked);
  for (const port of published) expect({ port, accepts: await accepts(port) }).toEqual({ port, accepts: false });
}, 900_000);

/** Every service's container was made by one call at most, and every environment's networks too. */
function expectNothingDouble(operations: readonly OperationView[]): void {
  const created = events.filter(({ Type, Action }) => Type === 'container' && Action === 'create');
  const services = created.flatMap(({ Actor }) =>
    Actor.Attributes['surefoot.kind'] === 'service' ? [Actor.Attributes['surefoot.id'] ?? ''] : [],
  );
  expect(services.filter((id, index) => services.indexOf(id) !== index)).toEqual([]);
  const succeeded = operations.filter(({ kind, state }) => kind === 'environment.create' && state === 'succeeded');
  expect(services.length).toBeGreaterThanOrEqual(SERVICES.length * succeeded.length);
  // A network's events have no labels; of each environment there are two, and one more was made undisturbed.
  const networks = events.filter(
    ({ Type, Action, Actor }) =>
      Type === 'network' && Action === 'create' && /^surefoot-[0-9a-f-]{36}$/.test(Actor.Attributes['name'] ?? ''),
  );
  expect(networks.length).toBeGreaterThanOrEqual(2 * succeeded.length);
  expect(networks.length).toBeLessThanOrEqual(2 * (KILLS + 1));
  const byEnvironment = Map.groupBy(created, ({ Actor }) => Actor.Attributes['surefoot.environment']);
  for (const { environmentId } of succeeded)
    expect({ environmentId, containers: byEnvironment.get(environmentId ?? '')?.length }).toEqual({
      environmentId,
      containers: SERVICES.length,
    });
}

/** But for what an operation that waits for a decision had made. */
async function expectNothingLeft(
  before: {
    readonly objects: readonly string[];
    readonly volumes: readonly string[];
    readonly mounts: readonly string[];
  },
  blocked: readonly OperationView[],
): Promise<void> {
  const environments = new Set(blocked.map(({ environmentId }) => environmentId ?? ''));
  const catalog = await installation.catalog();
  const { rows } = await catalog.query<{ id: string }>('select id from services where environment_id = any ($1)', [
    [...environments],
  ]);
  await catalog.end();
  const waiting = new Set([...environments, ...rows.map(({ id }) => id)]);
  const after = await objects();
  expect(after.filter((one) => !before.objects.includes(one) && !waiting.has(one.split(' ')[2] ?? ''))).toEqual([]);
  const labelled = new Set(after.map((one) => one.split(' ').at(-1)));
  // A volume without our labels would be nobody's.
  const volumes = await everyVolume();
  expect(volumes.filter((name) => !before.volumes.includes(name) && !labelled.has(name))).toEqual([]);
  if (blocked.length === 0) expect(mounts()).toEqual(before.mounts);
}
