/**
 * What an installation with a daemon of its own has on this machine, seen past it: the daemon's objects, the kernel's bridges
 * and firewall rules, the engine's interfaces, memory; and that daemon, and the engine, stopped and started again.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Daemon, isDaemonError } from '#docker';
import { STOP_TIMEOUT_SECONDS } from '#engines';
import { waitUntil } from '#testing';
import type { Installation } from './installation.ts';
import { hasEnded, memoryMb, proportionalMb } from './processes.ts';

/** What is used of the scripts in `deploy/local`, which are plain JavaScript. */
interface LocalInstallation {
  readInstallation(home: string): Promise<{ block: string; docker?: { private: boolean } } | undefined>;
}
interface LocalNetwork {
  concerns(rule: string, block: string, interfaces: readonly string[]): boolean;
}

/** How much there is of everything. */
export interface Counts {
  readonly containers: number;
  readonly networks: number;
  readonly volumes: number;
  /** In the kernel, of the daemon's networks. */
  readonly bridges: number;
  /** Firewall rules that name those bridges, or addresses of the installation. */
  readonly rules: number;
  /** Of the engine, its loopback included. */
  readonly interfaces: number;
}

export interface MemoryMb {
  readonly daemon: number;
  /** One process for each container, beside its own. */
  readonly shims: number;
  readonly worker: number;
  readonly ours: number;
}

/** As long as an effect has. */
const DEADLINE_MS = 180_000;

export class Host {
  readonly daemon: Daemon;
  readonly #installation: Installation;
  readonly #block: string;
  readonly #network: LocalNetwork;
  readonly #engineContainer: string;

  private constructor(installation: Installation, block: string, network: LocalNetwork, engineContainer: string) {
    this.daemon = new Daemon(installation.settings.dockerHost, DEADLINE_MS);
    this.#installation = installation;
    this.#block = block;
    this.#network = network;
    this.#engineContainer = engineContainer;
  }

  static async open(installation: Installation): Promise<Host> {
    const local = new URL('../../deploy/local/', import.meta.url).href;
    const choices = (await import(`${local}installation.mjs`)) as LocalInstallation;
    const network = (await import(`${local}machine-network.mjs`)) as LocalNetwork;
    const chosen = await choices.readInstallation(installation.settings.home);
    if (chosen?.docker?.private !== true)
      throw new Error(
        '--services restarts a Docker daemon, and this machine has one that is not the installation’s own',
      );
    const [engine] = await installation.catalog.query<{ container: string }>(
      `select identities ->> 'containerId' as container from engines where id = $1`,
      [installation.engine.engineId],
    );
    if (engine === undefined) throw new Error('the catalog has no engine');
    return new Host(installation, chosen.block, network, engine.container);
  }

  async counts(): Promise<Counts> {
    const networks = await this.daemon.networks();
    const bridges = networks
      .map(({ id }) => `br-${id.slice(0, 12)}`)
      .filter((name) => existsSync(`/sys/class/net/${name}`));
    return {
      containers: (await this.daemon.containers()).length,
      networks: networks.length,
      volumes: (await this.daemon.volumes()).length,
      bridges: bridges.length,
      rules: await this.#rules(bridges),
      interfaces: await this.#engineInterfaces(),
    };
  }

  memory(): MemoryMb {
    const { settings } = this.#installation;
    const ours = memoryMb(settings);
    return {
      daemon: proportionalMb(this.#daemonPid()),
      shims: sum(shimsBelow(dirname(socketOf(settings.dockerHost))).map(proportionalMb)),
      worker: ours.get('worker') ?? NaN,
      ours: sum([...ours.values()]),
    };
  }

  /** Closed, as the worker makes an environment's, and the engine in it. @returns milliseconds of each */
  async addNetwork(name: string, subnet: { readonly subnet: string; readonly gateway: string }): Promise<NetworkTimes> {
    const startedAt = performance.now();
    const id = await this.daemon.createNetwork({
      name,
      ...subnet,
      internal: true,
      options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
      labels: {},
    });
    const madeAt = performance.now();
    await this.daemon.connect(id, this.#engineContainer, ['db']);
    return { madeMs: madeAt - startedAt, joinedMs: performance.now() - madeAt };
  }

  /** @param answers whether the engine takes logins. @returns milliseconds until it rests, and from there until it answers */
  async restartEngine(answers: () => Promise<boolean>): Promise<Restart> {
    const before = await this.#engineNetworks();
    const startedAt = performance.now();
    await this.daemon.stopContainer(this.#engineContainer, STOP_TIMEOUT_SECONDS);
    const stoppedAt = performance.now();
    await this.daemon.startContainer(this.#engineContainer);
    await waitUntil('the engine answers', answers, { deadlineMs: DEADLINE_MS });
    const answeredAt = performance.now();
    const after = await this.#engineNetworks();
    if (after !== before) throw new Error(`the engine was in ${before} networks, and after its restart in ${after}`);
    return { stoppedMs: stoppedAt - startedAt, startedMs: answeredAt - stoppedAt };
  }

  /** Containers run on meanwhile; their published ports do not. @returns the same of the daemon */
  async restartDaemon(): Promise<Restart> {
    const pid = this.#daemonPid();
    const startedAt = performance.now();
    process.kill(pid, 'SIGTERM');
    await waitUntil('the daemon has ended', () => hasEnded(pid), { deadlineMs: DEADLINE_MS });
    const stoppedAt = performance.now();
    const back = this.#installation.restoreStack();
    await Promise.race([
      back,
      waitUntil('the daemon answers', () => this.#answers(), { deadlineMs: DEADLINE_MS, intervalMs: 50 }),
    ]);
    const answeredAt = performance.now();
    await back;
    return { stoppedMs: stoppedAt - startedAt, startedMs: answeredAt - stoppedAt };
  }

  async runningServices(): Promise<number> {
    const services = (await this.daemon.containers()).filter(isService);
    return services.filter(({ state }) => state === 'running').length;
  }

  /** Services that run, and whose program reaches the engine under the name that it has there. */
  async servicesInReach(): Promise<number> {
    const services = (await this.daemon.containers()).filter(isService);
    let inReach = 0;
    for (const { id, state } of services) {
      if (state !== 'running') continue;
      const command = ['timeout', '10', 'bash', '-c', 'exec 3<>/dev/tcp/db/5432'];
      const { exitCode } = await this.daemon.exec(id, { command, user: '', env: {}, maxBytes: 4_096 }, DEADLINE_MS);
      if (exitCode === 0) inReach += 1;
    }
    return inReach;
  }

  async #answers(): Promise<boolean> {
    try {
      await this.daemon.networks();
      return true;
    } catch (error) {
      if (!isDaemonError(error)) throw error;
      return false;
    }
  }

  async #rules(bridges: readonly string[]): Promise<number> {
    const { stdout } = await promisify(execFile)('iptables-save', { maxBuffer: 2 ** 26 });
    const rules = stdout.split('\n').filter((line) => line.startsWith('-A '));
    return rules.filter((rule) => this.#network.concerns(rule, this.#block, bridges)).length;
  }

  async #engineInterfaces(): Promise<number> {
    const pid = (await this.daemon.container(this.#engineContainer))?.State.Pid ?? 0;
    // proc_net(5): two lines of headings.
    return readFileSync(`/proc/${pid}/net/dev`, 'utf8').trimEnd().split('\n').length - 2;
  }

  /** Those in which it has an address. */
  async #engineNetworks(): Promise<number> {
    const container = await this.daemon.container(this.#engineContainer);
    return Object.values(container?.NetworkSettings.Networks ?? {}).filter(({ IPAddress }) => IPAddress !== '').length;
  }

  #daemonPid(): number {
    const folder = dirname(socketOf(this.#installation.settings.dockerHost));
    return Number(readFileSync(join(folder, 'dockerd.pid'), 'utf8'));
  }
}

export interface NetworkTimes {
  readonly madeMs: number;
  readonly joinedMs: number;
}

export interface Restart {
  readonly stoppedMs: number;
  readonly startedMs: number;
}

function isService({ labels }: { readonly labels: Readonly<Record<string, string>> }): boolean {
  return labels['surefoot.kind'] === 'service';
}

function socketOf(dockerHost: string): string {
  return new URL(dockerHost).pathname;
}

/** Each container's small process, which names its daemon's folder. */
function shimsBelow(folder: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return program.includes('containerd-shim') && args.some((arg) => arg.startsWith(`${folder}/`));
      } catch {
        // It has ended since the folder was read.
        return false;
      }
    });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
