/** Containers that write what a test wants, and both sides of their logs: a worker's watch and a gateway's reader. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Dockerode from 'dockerode';
import { type LogEvent, type LogFeed, LogReader } from '#broker';
import { LOG_TAIL_MAX, type LogLine, type Logger, type LogQuery } from '#kernel';
import { homeFromEnvironment, loadSettings, type Settings } from '#settings';
import { TcpProxy, waitUntil } from '#testing';
import { LogWatch } from '../../apps/worker/src/watch/logs.ts';
import type { LogLine as OwnLine } from './broker-world.ts';

export class LogsWorld {
  readonly settings: Settings;
  readonly hostId = `test-${randomUUID().slice(0, 8)}`;
  readonly installation = randomUUID();
  readonly docker: Dockerode;
  readonly daemon: SocketRelay;
  /** Of the worker's connections, and of the gateway's. */
  readonly workersBroker: TcpProxy;
  readonly gatewaysBroker: TcpProxy;
  readonly log: OwnLine[] = [];
  readonly watch: LogWatch;
  readonly reader: LogReader;
  readonly #containers: Dockerode.Container[] = [];

  private constructor(settings: Settings, daemon: SocketRelay, workersBroker: TcpProxy, gatewaysBroker: TcpProxy) {
    this.settings = settings;
    this.docker = new Dockerode({ socketPath: new URL(settings.dockerHost).pathname, host: '' });
    this.daemon = daemon;
    this.workersBroker = workersBroker;
    this.gatewaysBroker = gatewaysBroker;
    this.watch = new LogWatch({
      settings: {
        brokerUrl: workersBroker.through(settings.brokerUrl),
        dockerHost: daemon.dockerHost,
        hostId: this.hostId,
        installation: this.installation,
      },
      log: this.#logger(),
    });
    this.reader = this.newReader();
  }

  static async make({ served = true } = {}): Promise<LogsWorld> {
    const settings = loadSettings(homeFromEnvironment(process.env));
    const world = new LogsWorld(
      settings,
      await SocketRelay.inFrontOf(settings.dockerHost),
      await TcpProxy.inFrontOf(settings.brokerUrl),
      await TcpProxy.inFrontOf(settings.brokerUrl),
    );
    if (served) await world.serve();
    return world;
  }

  async serve(): Promise<void> {
    this.watch.start();
    await this.isServed();
  }

  async isServed(): Promise<void> {
    await waitUntil('logs are served', () => this.log.findLast(SERVING)?.message === 'logs are served');
  }

  newReader(silenceMs?: number): LogReader {
    return new LogReader({
      url: this.gatewaysBroker.through(this.settings.brokerUrl),
      name: 'surefoot test',
      ...(silenceMs === undefined ? {} : { silenceMs }),
    });
  }

  /** @param script for a shell. @returns the id of the container, which runs */
  async container(
    script: string,
    { terminal = false, kind = 'service', installation = this.installation } = {},
  ): Promise<string> {
    const container = await this.docker.createContainer({
      Image: this.settings.engineImage,
      Entrypoint: ['bash', '-c', script],
      Tty: terminal,
      StopSignal: 'SIGKILL',
      Labels: { 'surefoot.installation': installation, 'surefoot.kind': kind },
      HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'json-file', Config: {} } },
    });
    this.#containers.push(container);
    await container.start();
    return container.id;
  }

  /** Runs to its end. */
  async finished(script: string, more: { readonly terminal?: boolean } = {}): Promise<string> {
    const id = await this.container(script, more);
    await this.docker.getContainer(id).wait();
    return id;
  }

  async open(containerId: string, query: Partial<LogQuery> = {}, reader = this.reader): Promise<Told> {
    const feed = await reader.open(this.hostId, { tail: LOG_TAIL_MAX, follow: false, containerId, ...query });
    return new Told(feed);
  }

  /** To its end. */
  async read(containerId: string, query: Partial<LogQuery> = {}): Promise<Told> {
    const told = await this.open(containerId, query);
    await told.ended;
    return told;
  }

  async close(): Promise<void> {
    for (const proxy of [this.workersBroker, this.gatewaysBroker]) proxy.thaw();
    await this.reader.close('gateway_stopping');
    await this.watch.close();
    for (const part of [this.workersBroker, this.gatewaysBroker, this.daemon]) await part.close();
    await Promise.all(this.#containers.map((container) => container.remove({ force: true, v: true })));
  }

  #logger(): Logger {
    const at =
      (level: OwnLine['level']) =>
      (message: string, fields: object = {}): void =>
        void this.log.push({ level, message, fields: { ...fields } });
    return { info: at('info'), warn: at('warn'), error: at('error') };
  }
}

const SERVING = ({ message }: OwnLine): boolean => message === 'logs are served' || message === 'logs cannot be served';

/** What a reader was told, as fast as it comes. */
export class Told {
  readonly feed: LogFeed;
  readonly events: LogEvent[] = [];
  readonly ended: Promise<void>;

  constructor(feed: LogFeed) {
    this.feed = feed;
    this.ended = this.#read();
  }

  get lines(): readonly LogLine[] {
    return this.events.flatMap((event) => (event.type === 'lines' ? event.lines : []));
  }

  get texts(): readonly string[] {
    return this.lines.map(({ text }) => text);
  }

  get missing(): number {
    return this.events.reduce((sum, event) => sum + (event.type === 'gap' ? event.missing : 0), 0);
  }

  /** Undefined before that. */
  get end(): Extract<LogEvent, { readonly type: 'end' }> | undefined {
    return this.events.find((event) => event.type === 'end');
  }

  async hasLines(count: number): Promise<void> {
    await waitUntil(`${count} lines have come`, () => this.lines.length >= count);
  }

  async #read(): Promise<void> {
    for await (const event of this.feed) this.events.push(event);
  }
}

/** A relay on a Unix socket that counts, and can be gone. */
class SocketRelay {
  readonly dockerHost: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'docker-relay-'));
  readonly #open = new Set<Socket>();
  readonly #server;

  private constructor(target: string) {
    this.dockerHost = `unix://${join(this.#folder, 'docker.sock')}`;
    this.#server = createServer((client) => {
      const server = connect(target);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#open.add(from);
        from.pipe(to);
        from.on('error', () => undefined);
        from.on('close', () => {
          this.#open.delete(from);
          to.destroy();
        });
      }
    });
  }

  static async inFrontOf(dockerHost: string): Promise<SocketRelay> {
    const relay = new SocketRelay(new URL(dockerHost).pathname);
    await relay.accept();
    return relay;
  }

  get connections(): number {
    return this.#open.size / 2;
  }

  async accept(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(new URL(this.dockerHost).pathname, resolve));
  }

  /** As if the daemon had died. */
  async die(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.die();
    rmSync(this.#folder, { recursive: true });
  }
}
