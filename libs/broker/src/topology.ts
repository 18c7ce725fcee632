/**
 * The queues of jobs (DESIGN §9, "Jobs"). Declared at set-up, and again whenever a consumer finds its queue gone; declaring
 * what is there changes nothing.
 *
 * Arguments are part of a queue's identity: another value is refused by the broker (FIELD-CASES B086), so a change of them
 * needs a queue of another name.
 */
import type { Channel } from 'amqplib';
import { closeConnection, openConnection } from './connection.ts';
import { brokerError } from './errors.ts';

export interface JobTopology {
  /** One per host; the outbox names it as routing key of the default exchange. */
  readonly queue: string;
  readonly deadExchange: string;
  readonly deadQueue: string;
  readonly deliveryTimeoutMs: number;
}

/**
 * Longer than a claim may live (20 minutes), and stated here instead of trusted: the server's default has changed before
 * (FIELD-CASES B082). A delivery that is not acknowledged in this time comes again, which is harmless.
 */
const DELIVERY_TIMEOUT_MS = 30 * 60_000;

/** @param prefix told by tests, which share a broker */
export function jobTopology(hostId: string, prefix = 'surefoot'): JobTopology {
  return {
    queue: `${prefix}.jobs.${hostId}`,
    deadExchange: `${prefix}.dead`,
    deadQueue: `${prefix}.jobs.dead`,
    deliveryTimeoutMs: DELIVERY_TIMEOUT_MS,
  };
}

/** Above our own bound (the catalog counts interruptions), so that the broker's is only the last resort. */
const DELIVERY_LIMIT = 20;
/** Dead letters are evidence, not work: the catalog knows every open job. */
const DEAD_LETTERS_MAX = 10_000;

export async function declareOn(channel: Channel, topology: JobTopology): Promise<void> {
  const { queue, deadExchange, deadQueue, deliveryTimeoutMs } = topology;
  try {
    await channel.assertExchange(deadExchange, 'topic', { durable: true });
    await channel.assertQueue(deadQueue, {
      durable: true,
      arguments: { 'x-queue-type': 'quorum', 'x-max-length': DEAD_LETTERS_MAX },
    });
    // A dead letter keeps its routing key, the queue it came from.
    await channel.bindQueue(deadQueue, deadExchange, queue.replace(/[^.]+$/, '*'));
    await channel.assertQueue(queue, {
      durable: true,
      arguments: {
        'x-queue-type': 'quorum',
        'x-single-active-consumer': true,
        'x-delivery-limit': DELIVERY_LIMIT,
        'x-consumer-timeout': deliveryTimeoutMs,
        'x-dead-letter-exchange': deadExchange,
        'x-dead-letter-strategy': 'at-least-once',
        // At-least-once dead-lettering needs it (RabbitMQ manual, "Quorum queues").
        'x-overflow': 'reject-publish',
      },
    });
  } catch (error) {
    throw brokerError(`declaring queue ${queue}`, error);
  }
}

/** @throws BrokerUnavailable, BrokerRefused */
export async function declareTopology(url: string, topology: JobTopology): Promise<void> {
  const connection = await openConnection(url, 'surefoot set-up');
  try {
    const channel = await connection.createChannel();
    // The refusal itself reaches the call; a listener only keeps the event from ending the process.
    channel.on('error', () => undefined);
    await declareOn(channel, topology);
  } finally {
    await closeConnection(connection);
  }
}
