/**
 * Deliveries in, for as long as the process wants them.
 *
 * - A delivery is settled on the channel that brought it, or not at all: a delivery tag means nothing elsewhere
 *   (FIELD-CASES B087). What could not be settled comes again.
 * - However a subscription ends (cancelled by the broker, channel closed, connection lost, silently forgotten), another is
 *   made. Only `stopConsuming` ends it.
 * - It is `ready` when the broker says that it counts a consumer, not when we asked for one.
 */
import { setTimeout } from 'node:timers/promises';
import type { Logger } from '#kernel';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { BackOff } from './back-off.ts';
import { closeChannel, closeConnection, openConnection, within } from './connection.ts';
import { brokerError, BrokerRefused, BrokerUnavailable } from './errors.ts';
import { declareOn, type JobTopology } from './topology.ts';

/** `standby`: another consumer was there first, and gets the messages until it goes. `refused`: somebody has to act. */
export type SubscriptionStatus = 'connecting' | 'ready' | 'standby' | 'refused' | 'stopped';

export type Settling = 'ack' | 'requeue' | 'reject';

export interface Delivery {
  readonly content: Buffer;
  /** How often it came before. */
  readonly earlierDeliveries: number;
  /** False once its channel is gone: then it comes again, and is not ours to settle. */
  isCurrent(): boolean;
  /** @returns whether it was said; only then does the delivery not come again by itself */
  settle(answer: Settling): boolean;
}

export interface SubscriptionOptions {
  readonly url: string;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  readonly topology: JobTopology;
  readonly logger: Logger;
  readonly onDelivery: (delivery: Delivery) => void;
  readonly onStatus: (status: SubscriptionStatus, detail: string) => void;
}

const ANSWER_TIMEOUT_MS = 5_000;
const CANCEL_TIMEOUT_MS = 2_000;
/** How often the broker is asked whether it still counts our consumer. */
const CHECK_INTERVAL_MS = 5_000;

interface Session {
  readonly channel: Channel;
  readonly consumerTag: string;
}

export class Subscription {
  readonly #options: SubscriptionOptions;
  /** No further subscription. */
  readonly #stopping = new AbortController();
  #session: Session | undefined;
  /** Ends the session in hand, with the reason. */
  #end: (why: string) => void = () => undefined;
  #running: Promise<void> | undefined;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** No new deliveries from here on; those that are here can still be settled. */
  async stopConsuming(): Promise<void> {
    this.#stopping.abort();
    const session = this.#session;
    if (session === undefined) return;
    const cancelled = session.channel.cancel(session.consumerTag);
    await within(CANCEL_TIMEOUT_MS, 'cancelling the consumer', cancelled).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#end('closed on request');
    await this.#running;
  }

  async #run(): Promise<void> {
    const { onStatus } = this.#options;
    const backOff = new BackOff();
    while (!this.#isStopping()) {
      try {
        const why = await this.#subscribe(() => backOff.reset());
        if (!this.#isStopping()) onStatus('connecting', why);
      } catch (error) {
        const known = brokerError('subscribing', error);
        onStatus(known instanceof BrokerRefused ? 'refused' : 'connecting', known.message);
      }
      await backOff.wait(this.#stopping.signal);
    }
    onStatus('stopped', 'stopped on request');
  }

  /** @returns why the subscription ended */
  async #subscribe(onReady: () => void): Promise<string> {
    const { url, name, topology } = this.#options;
    const connection = await openConnection(url, name);
    try {
      return await this.#consume(connection, topology, onReady);
    } finally {
      // The channel first: the broker reads a connection's goodbye before it has worked through what its channels sent,
      // and an acknowledgement on the way would be lost.
      if (this.#session !== undefined) await closeChannel(this.#session.channel);
      this.#session = undefined;
      await closeConnection(connection);
    }
  }

  async #consume(connection: ChannelModel, topology: JobTopology, onReady: () => void): Promise<string> {
    const end = Promise.withResolvers<string>();
    connection.once('close', () => end.resolve('the connection was lost'));
    this.#end = end.resolve;
    const channel = await answered('opening a channel', connection.createChannel());
    channel.on('error', (error) => end.resolve(`the broker closed the channel (${error.message})`));
    channel.once('close', () => end.resolve('the channel was closed'));
    await answered('declaring the queue', declareOn(channel, topology));
    await answered('setting the prefetch', channel.prefetch(1));
    if (this.#isStopping()) return 'stopped on request';
    const counter = new Outstanding(channel, () => end.resolve('the broker sent more than one delivery at a time'));
    const onMessage = (message: ConsumeMessage | null): void => {
      if (message === null) end.resolve('the broker cancelled the consumer');
      else this.#deliver(counter.add(message));
    };
    return Promise.race([end.promise, this.#hold(channel, onMessage, counter, onReady)]);
  }

  #deliver(delivery: Delivery | undefined): void {
    if (delivery !== undefined) this.#options.onDelivery(delivery);
  }

  /**
   * Subscribes, and looks from then on. With a single active consumer the broker counts one, and does not tell whose it is:
   * ours, if there was none before or once something came. Else another one is served, and we ask anew until it is gone.
   */
  async #hold(
    channel: Channel,
    onMessage: (message: ConsumeMessage | null) => void,
    counter: Outstanding,
    onReady: () => void,
  ): Promise<string> {
    const { queue } = this.#options.topology;
    const backOff = new BackOff();
    for (;;) {
      const others = await consumers(channel, queue);
      const { consumerTag } = await answered('subscribing', channel.consume(queue, onMessage));
      this.#session = { channel, consumerTag };
      if (this.#isStopping()) await this.stopConsuming();
      if (others === 0) return this.#watch(channel, onReady);
      await backOff.wait(this.#stopping.signal);
      if (counter.hasReceived) return this.#watch(channel, onReady);
      this.#options.onStatus('standby', `another consumer of ${queue} is served first`);
      await answered('asking anew', channel.cancel(consumerTag));
    }
  }

  /** Looks until the broker no longer counts a consumer, or the channel fails. Never returns while all is well. */
  async #watch(channel: Channel, onReady: () => void): Promise<string> {
    while (!this.#isStopping()) {
      if ((await consumers(channel, this.#options.topology.queue)) === 0)
        return 'the broker does not count our consumer';
      onReady();
      if (!this.#isStopping()) this.#options.onStatus('ready', 'subscribed');
      await setTimeout(CHECK_INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
    // What is left to settle is waited for; nothing is looked for any more.
    return new Promise(() => undefined);
  }

  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }
}

async function consumers(channel: Channel, queue: string): Promise<number> {
  return (await answered('asking for the consumers', channel.checkQueue(queue))).consumerCount;
}

/** The deliveries of one channel that are not settled. There is one at most: the prefetch is checked, not trusted (B089). */
class Outstanding {
  readonly #channel: Channel;
  readonly #onExcess: () => void;
  #open = true;
  #unsettled = 0;
  hasReceived = false;

  constructor(channel: Channel, onExcess: () => void) {
    this.#channel = channel;
    this.#onExcess = onExcess;
    channel.once('close', () => (this.#open = false));
  }

  add(message: ConsumeMessage): Delivery | undefined {
    this.hasReceived = true;
    this.#unsettled += 1;
    if (this.#unsettled > 1) {
      // Left unsettled: the session ends, and the broker gives both to the next one.
      this.#onExcess();
      return undefined;
    }
    let settled = false;
    return {
      content: message.content,
      earlierDeliveries: Number(message.properties.headers?.['x-delivery-count'] ?? 0),
      isCurrent: () => this.#open && !settled,
      settle: (answer) => {
        if (settled || !this.#open) return false;
        settled = true;
        this.#unsettled -= 1;
        return this.#say(message, answer);
      },
    };
  }

  #say(message: ConsumeMessage, answer: Settling): boolean {
    try {
      if (answer === 'ack') this.#channel.ack(message);
      else this.#channel.nack(message, false, answer === 'requeue');
      return true;
    } catch {
      // The channel is closing: its end has not been told yet, and the delivery comes again.
      return false;
    }
  }
}

function answered<T>(what: string, work: Promise<T>): Promise<T> {
  return within(ANSWER_TIMEOUT_MS, what, work).catch((error: unknown) => {
    throw error instanceof BrokerUnavailable ? error : brokerError(what, error);
  });
}
