/** A Docker daemon of a test's own, which it may freeze, and whose disk it may fill. Needs root, and a daemon to be installed. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import Dockerode from 'dockerode';
import { waitUntil } from '#testing';

/** The file is another one for this process alone, and what it starts. */
const WITH_RESOLVER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';

export class PrivateDaemon {
  /** As DOCKER_HOST. */
  readonly dockerHost: string;
  readonly docker: Dockerode;
  /** Of its disk. */
  readonly dataFolder: string;
  readonly #folder: string;
  readonly #process: ChildProcess;

  private constructor(folder: string, nameserver: string | undefined) {
    this.#folder = folder;
    this.dataFolder = join(folder, 'data');
    const socket = join(folder, 'docker.sock');
    this.dockerHost = `unix://${socket}`;
    this.docker = new Dockerode({ socketPath: socket, host: '' });
    const log = openSync(join(folder, 'log'), 'w');
    const places = { 'data-root': this.dataFolder, 'exec-root': join(folder, 'exec'), pidfile: join(folder, 'pid') };
    // What runs on it is on closed networks, so it leaves the machine's firewall alone.
    const args = ['--bridge', 'none', '--iptables=false', '-H', this.dockerHost];
    for (const [name, place] of Object.entries(places)) args.push(`--${name}`, place);
    const command = ['dockerd', ...args];
    if (nameserver !== undefined) {
      const resolver = join(folder, 'resolv.conf');
      writeFileSync(resolver, `nameserver ${nameserver}\n`);
      command.unshift('unshare', '--mount', 'sh', '-c', WITH_RESOLVER, resolver);
    }
    const [program = '', ...rest] = command;
    this.#process = spawn(program, rest, { stdio: ['ignore', log, log] });
  }

  static possible(): boolean {
    const folders = (process.env['PATH'] ?? '').split(delimiter);
    return process.geteuid?.() === 0 && folders.some((folder) => isProgram(join(folder, 'dockerd')));
  }

  /**
   * @param diskMegabytes a disk of that size in memory; as large as the machine's where it is left out
   * @param nameserver what this daemon takes for the machine's own; the machine's where it is left out
   */
  static async start({
    diskMegabytes,
    nameserver,
  }: { readonly diskMegabytes?: number; readonly nameserver?: string } = {}): Promise<PrivateDaemon> {
    // Short: paths of Unix sockets end at 107 bytes.
    const folder = mkdtempSync('/var/tmp/dockerd-');
    mkdirSync(join(folder, 'data'));
    if (diskMegabytes !== undefined)
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', join(folder, 'data')]);
    const daemon = new PrivateDaemon(folder, nameserver);
    await waitUntil('the daemon answers', () => daemon.docker.ping().catch(() => false as const));
    return daemon;
  }

  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  async remove(): Promise<void> {
    this.thaw();
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGTERM');
    await ended;
    // What it mounted itself, and its disk: the last one first.
    const mounts = execFileSync('cat', ['/proc/self/mounts'], { encoding: 'utf8' })
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter((path) => path.startsWith(`${this.#folder}/`));
    for (const path of mounts.reverse()) execFileSync('umount', [path]);
    rmSync(this.#folder, { recursive: true });
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
