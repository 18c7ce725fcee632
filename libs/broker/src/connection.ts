/** One connection to the broker, and how to be rid of it for certain. */
import type { Duplex } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { connect, type Channel, type ChannelModel } from 'amqplib';
import { brokerError, BrokerUnavailable } from './errors.ts';

/** For the TCP connection and the handshake; the broker may be starting. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A peer that is silent for two of these is gone. Frozen brokers and cut cables say nothing else. */
const HEARTBEAT_SECONDS = 10;
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * @param name shown in the broker's list of connections
 * @throws BrokerUnavailable, BrokerRefused
 */
export async function openConnection(url: string, name: string): Promise<ChannelModel> {
  const address = new URL(url);
  address.searchParams.set('heartbeat', String(HEARTBEAT_SECONDS));
  try {
    const connection = await connect(address.href, {
      timeout: CONNECT_TIMEOUT_MS,
      // A job is one small frame: waiting for more to send with it would cost 40 ms.
      noDelay: true,
      keepAlive: true,
      clientProperties: { connection_name: name },
    });
    // Each user listens to `close`, which always follows; an `error` without a listener would end the process.
    connection.on('error', () => undefined);
    return connection;
  } catch (error) {
    throw brokerError(`connecting to the broker at ${address.host}`, error);
  }
}

/** Returns once the broker has worked through everything that was written to the channel, or does not answer. */
export async function closeChannel(channel: Channel): Promise<void> {
  try {
    await within(CLOSE_TIMEOUT_MS, 'closing the channel', channel.close());
  } catch {
    // Gone already.
  }
}

/** Says goodbye, so that what was written before has arrived; a broker that does not answer is left. */
export async function closeConnection(connection: ChannelModel): Promise<void> {
  try {
    await within(CLOSE_TIMEOUT_MS, 'closing the connection', connection.close());
  } catch {
    // Closed already, or silent: either way there is nothing more to say to it.
  }
  dropConnection(connection);
}

/** At once and without a word. Whatever was not acknowledged on it is delivered again elsewhere. */
export function dropConnection(connection: ChannelModel): void {
  // amqplib offers only the polite way, which waits for an answer.
  const { stream } = connection.connection as unknown as { readonly stream: Duplex };
  stream.destroy(new Error('given up'));
}

/** @throws BrokerUnavailable when `work` takes longer; what comes of it then is ignored. */
export async function within<T>(milliseconds: number, what: string, work: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = setTimeout(milliseconds, undefined, { signal: timer.signal }).then(() => {
    throw new BrokerUnavailable(`${what}: no answer in ${milliseconds} ms`);
  });
  late.catch(() => undefined);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
  }
}
