/**
 * A registry on loopback that asks for a name and a password: Debian's `docker-registry`, fetched once through the machine's
 * own apt into the cache, as the set-up fetches what it needs. In front of it stands a relay that can be slow, or be cut.
 */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { waitUntil } from '#testing';
import { docker } from './engine-world.ts';

const run = promisify(execFile);

/** What is used of the set-up's scripts, which are plain JavaScript. */
interface DebianArchive {
  readonly architecture: () => Promise<string>;
  readonly findArchive: (cache: string) => Promise<{ readonly codename: string } | undefined>;
  readonly fetchPackages: (order: {
    readonly archive: unknown;
    readonly suite: string;
    readonly cache: string;
    readonly packages: readonly string[];
    readonly withheld: readonly string[];
    readonly note: (detail: string) => void;
  }) => Promise<{ readonly files: readonly string[]; readonly discard: () => Promise<void> }>;
}
interface LocalStack {
  readonly cacheFolder: () => string;
}

const script = (name: string): Promise<unknown> =>
  import(new URL(`../../deploy/local/${name}`, import.meta.url).href) as Promise<unknown>;

export const CREDENTIALS = { username: 'puller', password: 'pull-and-nothing-else' };
/** bcrypt, the only kind that the registry reads. */
const HTPASSWD = `${CREDENTIALS.username}:$2y$05$Wn8yJ0wFzq3bq1l0m2xQ7u.7IHAuWhjr6lQGNaD4EKjDBJX2p.T8a\n`;

export class RegistryWorld {
  /** Of the relay's way to the daemon; no limit when undefined. */
  bytesPerSecond: number | undefined;
  /** The bytes of layers after which every connection breaks, and none is taken any more. */
  cutAfterBytes = Infinity;
  /** Of layers, that went to the daemon so far. */
  layerBytes = 0;
  /** That were answered, or were to be. */
  requests = 0;
  readonly #folder: string;
  readonly #registry: ChildProcess;
  readonly #registryPort: number;
  readonly #relay: Server;
  readonly #pushed: string[] = [];

  private constructor(folder: string, registry: ChildProcess, registryPort: number) {
    this.#folder = folder;
    this.#registry = registry;
    this.#registryPort = registryPort;
    this.#relay = createServer((asked, answer) => {
      this.#pass(asked, answer);
    });
  }

  static async start(): Promise<RegistryWorld> {
    const program = await registryProgram();
    const folder = mkdtempSync('/var/tmp/registry-');
    const port = await freePort();
    writeFileSync(join(folder, 'htpasswd'), HTPASSWD);
    const configuration = {
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: join(folder, 'data') } },
      http: { addr: `127.0.0.1:${port}` },
      auth: { htpasswd: { realm: 'test', path: join(folder, 'htpasswd') } },
    };
    // JSON is YAML.
    writeFileSync(join(folder, 'config.yml'), JSON.stringify(configuration));
    const registry = spawn(program, ['serve', join(folder, 'config.yml')], { stdio: 'ignore', cwd: folder });
    const world = new RegistryWorld(folder, registry, port);
    await new Promise<void>((resolve) => world.#relay.listen(0, '127.0.0.1', resolve));
    await waitUntil('the registry answers', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => undefined);
      return answer?.status === 401;
    });
    return world;
  }

  /** By the relay. The daemon takes one on loopback without TLS. */
  get address(): string {
    return `localhost:${(this.#relay.address() as AddressInfo).port}`;
  }

  /** An image with one layer of noise, in the registry and no longer in the daemon. @returns `repository@sha256:…` */
  async push(reference: string, megabytes: number): Promise<string> {
    const image = `head -c ${megabytes}M /dev/urandom >noise && tar -c noise | docker import - ${reference}`;
    await run('bash', ['-euo', 'pipefail', '-c', image], {
      cwd: this.#folder,
      env: { ...process.env, DOCKER_HOST: dockerHost() },
    });
    this.#pushed.push(reference);
    const sent = await docker.getImage(reference).push({ authconfig: { ...CREDENTIALS, serveraddress: this.address } });
    await new Promise<void>((resolve, reject) => {
      docker.modem.followProgress(sent, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
    const { RepoDigests } = await docker.getImage(reference).inspect();
    await this.forget(reference);
    return RepoDigests[0] ?? '';
  }

  /** The daemon has it no more. */
  async forget(reference: string): Promise<void> {
    await docker.getImage(reference).remove({ force: true });
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#registry.once('exit', resolve));
    this.#registry.kill();
    await ended;
    this.#relay.closeAllConnections();
    await new Promise((resolve) => this.#relay.close(resolve));
    for (const reference of this.#pushed) await this.forget(reference).catch(() => undefined);
    rmSync(this.#folder, { recursive: true });
  }

  #pass(asked: IncomingMessage, answer: ServerResponse): void {
    this.requests += 1;
    if (this.layerBytes > this.cutAfterBytes) {
      asked.socket.destroy();
      return;
    }
    const { method, url, headers } = asked;
    const onward = request({ host: '127.0.0.1', port: this.#registryPort, method, path: url, headers }, (found) => {
      answer.writeHead(found.statusCode ?? 502, found.headers);
      const isLayer = method === 'GET' && url?.includes('/blobs/') === true;
      const paced = isLayer ? Readable.from(this.#paced(found, asked)) : found;
      paced.on('error', () => asked.socket.destroy());
      paced.pipe(answer);
    });
    onward.on('error', () => asked.socket.destroy());
    asked.pipe(onward);
  }

  async *#paced(layer: AsyncIterable<Buffer>, { socket }: IncomingMessage): AsyncGenerator<Buffer> {
    for await (const chunk of layer) {
      this.layerBytes += chunk.length;
      if (this.layerBytes > this.cutAfterBytes) {
        socket.destroy();
        return;
      }
      yield chunk;
      if (this.bytesPerSecond !== undefined) await setTimeout((1_000 * chunk.length) / this.bytesPerSecond);
    }
  }
}

function dockerHost(): string {
  const { socketPath } = docker.modem as { readonly socketPath?: string };
  return `unix://${socketPath ?? ''}`;
}

async function registryProgram(): Promise<string> {
  const { cacheFolder } = (await script('stack.mjs')) as LocalStack;
  const { architecture, fetchPackages, findArchive } = (await script('debian-archive.mjs')) as DebianArchive;
  const cache = cacheFolder();
  const archive = await findArchive(cache);
  if (archive === undefined) throw new Error('the registry comes as a package, and there is no package archive here');
  const { codename: suite } = archive;
  const kept = join(cache, `docker-registry.${suite}.${await architecture()}`);
  if (existsSync(kept)) return kept;
  mkdirSync(cache, { recursive: true });
  // The program wants nothing but the machine's C library, and its own release fits that.
  const withheld = ['adduser', 'init-system-helpers', 'libc6', 'lsb-base', 'sysvinit-utils'];
  const packages = ['docker-registry'];
  const fetched = await fetchPackages({ archive, suite, cache, packages, withheld, note: () => undefined });
  const work = mkdtempSync(join(cache, 'registry-'));
  try {
    const file = fetched.files.find((path) => path.includes('/docker-registry_'));
    await run('dpkg', ['--extract', file ?? '', work]);
    renameSync(join(work, 'usr/bin/docker-registry'), kept);
  } finally {
    await fetched.discard();
    rmSync(work, { recursive: true });
  }
  return kept;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
