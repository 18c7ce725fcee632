/** A broker of the test run's stack, queues of the test's own, and a look at them from outside. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { connect, type ChannelModel } from 'amqplib';
import { declareTopology, JOB_PATTERN, jobTopology, JobServer, type JobMessage, type JobTopology } from '#broker';
import type { Logger } from '#kernel';
import { homeFromEnvironment, loadSettings, type Settings } from '#settings';
import { inStackContainer, TcpProxy, waitUntil } from '#testing';

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export class BrokerWorld {
  readonly settings: Settings;
  readonly topology: JobTopology;
  readonly proxy: TcpProxy;
  /** Through the proxy. */
  readonly url: string;
  readonly log: LogLine[] = [];
  readonly #observer: ChannelModel;
  readonly #servers: JobServer[] = [];

  private constructor(settings: Settings, topology: JobTopology, proxy: TcpProxy, observer: ChannelModel) {
    this.settings = settings;
    this.topology = topology;
    this.proxy = proxy;
    this.url = proxy.through(settings.brokerUrl);
    this.#observer = observer;
    observer.on('error', () => undefined);
  }

  static async make(changes: Partial<JobTopology> = {}): Promise<BrokerWorld> {
    const settings = loadSettings(homeFromEnvironment(process.env));
    const topology = { ...jobTopology('h1', `test-${randomUUID().slice(0, 8)}`), ...changes };
    await declareTopology(settings.brokerUrl, topology);
    const proxy = await TcpProxy.inFrontOf(settings.brokerUrl);
    return new BrokerWorld(settings, topology, proxy, await connect(settings.brokerUrl));
  }

  get logger(): Logger {
    const at =
      (level: LogLine['level']) =>
      (message: string, fields: object = {}): void =>
        void this.log.push({ level, message, fields: { ...fields } });
    return { info: at('info'), warn: at('warn'), error: at('error') };
  }

  /** A job server with this handler; started, and subscribed unless told otherwise. */
  async serve(handler: (message: JobMessage) => unknown, { subscribed = true } = {}): Promise<JobServer> {
    const { url, topology, logger } = this;
    const server = new JobServer({ url, topology, logger, pauses: { firstMs: 1, mostMs: 10 } });
    this.#servers.push(server);
    server.addHandler(JOB_PATTERN, async (message: JobMessage) => handler(message), true);
    server.listen(() => undefined);
    if (subscribed) await waitUntil('the server is ready', () => server.report.status === 'ready');
    return server;
  }

  /** @returns the job ids, in order */
  async publishJobs(count: number): Promise<readonly string[]> {
    const jobIds = Array.from({ length: count }, () => randomUUID());
    await this.publish(jobIds.map((jobId) => Buffer.from(JSON.stringify({ version: 1, jobId }))));
    return jobIds;
  }

  async publish(contents: readonly Buffer[]): Promise<void> {
    const channel = await this.#observer.createConfirmChannel();
    for (const content of contents) channel.sendToQueue(this.topology.queue, content, { persistent: true });
    await channel.waitForConfirms();
    await channel.close();
  }

  /** Undefined when there is no such queue. */
  async messages(queue = this.topology.queue): Promise<number | undefined> {
    const channel = await this.#observer.createChannel();
    channel.on('error', () => undefined);
    try {
      const { messageCount } = await channel.checkQueue(queue);
      await channel.close();
      return messageCount;
    } catch {
      return undefined;
    }
  }

  async take(queue: string): Promise<string> {
    const channel = await this.#observer.createChannel();
    try {
      return await waitUntil(`a message in ${queue}`, async () => {
        const message = await channel.get(queue, { noAck: true });
        return message === false ? undefined : message.content.toString();
      });
    } finally {
      await channel.close();
    }
  }

  async deleteQueue(queue = this.topology.queue): Promise<void> {
    const channel = await this.#observer.createChannel();
    await channel.deleteQueue(queue);
    await channel.close();
  }

  async declareQueue(queue: string, args: Record<string, unknown>): Promise<void> {
    const channel = await this.#observer.createChannel();
    await channel.assertQueue(queue, { durable: true, arguments: args });
    await channel.close();
  }

  /** The broker's own administration program, in its container. */
  async ctl(...args: readonly string[]): Promise<string> {
    const { dockerHost, brokerUrl } = this.settings;
    return inStackContainer(dockerHost, brokerUrl, { command: ['rabbitmqctl', '-q', ...args] });
  }

  async close(): Promise<void> {
    this.proxy.thaw();
    await Promise.all(this.#servers.map((server) => server.close()));
    const { queue, deadQueue, deadExchange } = this.topology;
    const channel = await this.#observer.createChannel();
    await channel.deleteQueue(queue);
    await channel.deleteQueue(deadQueue);
    await channel.deleteExchange(deadExchange);
    await this.#observer.close();
    await this.proxy.close();
  }
}

/** A handler that says when it began, and ends when it is told to. Counts how many run at a time. */
export class SteppedHandler {
  readonly began: string[] = [];
  readonly ended: string[] = [];
  inFlight = 0;
  inFlightMost = 0;
  #release = Promise.withResolvers<undefined>();

  readonly handle = async ({ jobId }: JobMessage): Promise<void> => {
    this.inFlight += 1;
    this.inFlightMost = Math.max(this.inFlightMost, this.inFlight);
    this.began.push(jobId);
    await this.#release.promise;
    this.ended.push(jobId);
    this.inFlight -= 1;
  };

  /** Lets this and every later one go on. */
  release(): void {
    this.#release.resolve(undefined);
  }

  async hasBegun(count: number): Promise<void> {
    await waitUntil(`${count} handlers have begun`, () => this.began.length >= count);
  }
}

/** Long enough for a wrong second handler to have begun. Only for what must not happen: nothing tells when it did not. */
export async function aWhile(): Promise<void> {
  await setTimeout(300);
}
