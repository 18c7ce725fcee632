/**
 * Messages out, with proof. A message counts as published when the broker has confirmed it, on the channel it was written
 * to, and has not returned it. Anything less is a failure that the caller repeats: a duplicate is harmless, a loss is not.
 */
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '#kernel';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { closeConnection, dropConnection, openConnection, within } from './connection.ts';
import { brokerError, BrokerUnavailable } from './errors.ts';

export interface OutgoingMessage {
  /** Empty for the default exchange, where the routing key is a queue's name. */
  readonly exchange: string;
  readonly routingKey: string;
  readonly body: JsonObject;
  /** For what is of no use after a restart of the broker. */
  readonly transient?: true;
}

/** `unroutable`: no queue takes it, which the broker would otherwise not mention. `rejected`: a queue refused it. */
export type PublishOutcome = 'confirmed' | 'unroutable' | 'rejected';

export interface PublisherOptions {
  readonly url: string;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  /** A batch that is not confirmed by then has failed. */
  readonly deadlineMs: number;
}

interface Link {
  readonly connection: ChannelModel;
  readonly channel: ConfirmChannel;
  /** Message ids that the broker returned; it does so before it confirms them. */
  readonly returned: Set<string>;
  /** Why the broker takes no messages now, such as a memory alarm. */
  blocked: string | undefined;
}

export class Publisher {
  readonly #options: PublisherOptions;
  #link: Link | undefined;
  #opening: Promise<Link> | undefined;
  #closed = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Makes sure that there is a channel, so that a caller finds out before it begins a transaction. @throws as `publish` */
  async connect(): Promise<void> {
    refuseBlocked(await this.#open());
  }

  /**
   * Returns once the broker has answered for every message; never later than the deadline.
   * @returns one outcome per message, in order
   * @throws BrokerUnavailable when any of them is unanswered: all may be published again
   */
  async publish(batch: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    const link = await this.#open();
    refuseBlocked(link);
    const answers = batch.map((message) => send(link, message));
    try {
      return await within(this.#options.deadlineMs, `publishing ${batch.length} messages`, Promise.all(answers));
    } catch (error) {
      // A blocked broker has not read them yet and will; one that is silent for no stated reason is not asked again.
      if (link.blocked === undefined) this.#drop(link);
      throw brokerError('publishing', error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const link = this.#link ?? (await this.#opening?.catch(() => undefined));
    this.#link = undefined;
    if (link !== undefined) await closeConnection(link.connection);
  }

  async #open(): Promise<Link> {
    if (this.#closed) throw new BrokerUnavailable('the publisher is closed');
    if (this.#link !== undefined) return this.#link;
    this.#opening ??= this.#connect().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #connect(): Promise<Link> {
    const { url, name, deadlineMs } = this.#options;
    const connection = await openConnection(url, name);
    try {
      const channel = await within(deadlineMs, 'opening a channel', connection.createConfirmChannel());
      const link: Link = { connection, channel, returned: new Set(), blocked: undefined };
      channel.on('error', () => undefined);
      channel.on('return', (message) => link.returned.add(String(message.properties.messageId)));
      connection.on('blocked', (reason) => (link.blocked = reason));
      connection.on('unblocked', () => (link.blocked = undefined));
      channel.once('close', () => this.#drop(link));
      connection.once('close', () => this.#drop(link));
      this.#link = link;
      return link;
    } catch (error) {
      dropConnection(connection);
      throw brokerError('opening a channel', error);
    }
  }

  #drop(link: Link): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    dropConnection(link.connection);
  }
}

function refuseBlocked(link: Link): void {
  if (link.blocked !== undefined)
    throw new BrokerUnavailable(`the broker takes no messages at present: ${link.blocked}`);
}

function send(
  { channel, returned }: Link,
  { exchange, routingKey, body, transient }: OutgoingMessage,
): Promise<PublishOutcome> {
  const messageId = randomUUID();
  return new Promise((resolve, reject) => {
    const answered = (error: unknown): void => {
      const wasReturned = returned.delete(messageId);
      if (error === null) resolve(wasReturned ? 'unroutable' : 'confirmed');
      else if (error instanceof Error && error.message === 'message nacked') resolve('rejected');
      else reject(brokerError('waiting for a confirm', error));
    };
    channel.publish(
      exchange,
      routingKey,
      Buffer.from(JSON.stringify(body)),
      { persistent: transient !== true, mandatory: true, contentType: 'application/json', messageId },
      answered,
    );
  });
}
