/** What a failure of the broker means, decided once (STYLE, habit 5). */

/** The broker cannot be reached, went away, or does not take messages now. The same may be tried again. */
export class BrokerUnavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BrokerUnavailable';
  }
}

/** Trying again changes nothing: somebody has to do something about the broker. The message says what. */
export class BrokerRefused extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BrokerRefused';
  }
}

/** AMQP 0-9-1, "Constants": reply codes, and classes of methods. */
const ACCESS_REFUSED = 403;
const RESOURCE_LOCKED = 405;
const PRECONDITION_FAILED = 406;
const NOT_ALLOWED = 530;
const EXCHANGE_CLASS = 40;
const QUEUE_CLASS = 50;

/** @param what the attempt, for the message: `declaring queue …` */
export function brokerError(what: string, error: unknown): BrokerUnavailable | BrokerRefused {
  if (error instanceof BrokerUnavailable || error instanceof BrokerRefused) return error;
  const text = error instanceof Error ? error.message : String(error);
  const code = replyCode(error, text);
  const { classId } = error as { classId?: number };
  // RabbitMQ also answers 406 to a late or repeated acknowledgement, which a new channel cures.
  if (code === PRECONDITION_FAILED && (classId === QUEUE_CLASS || classId === EXCHANGE_CLASS))
    return new BrokerRefused(
      `${what}: it exists with other settings (${text}). Nothing was changed. If no other program owns it, remove it ` +
        'once it is empty and run "npm start" again: the jobs themselves are in the catalog',
      { cause: error },
    );
  if (code === ACCESS_REFUSED || code === RESOURCE_LOCKED || code === NOT_ALLOWED)
    return new BrokerRefused(`${what}: the broker does not allow it (${text}). Check SUREFOOT_BROKER_URL`, {
      cause: error,
    });
  return new BrokerUnavailable(`${what}: ${text === '' ? 'no answer' : text}`, { cause: error });
}

/** A handshake's refusal has its code only in its text: `Handshake terminated by server: 403 (ACCESS-REFUSED) …`. */
function replyCode(error: unknown, text: string): number | undefined {
  const { code } = error as { code?: unknown };
  if (typeof code === 'number') return code;
  const found = /\b([345]\d\d) \([A-Z-]+\)/.exec(text) ?? /replyCode"?: ?([345]\d\d)\b/.exec(text);
  return found === null ? undefined : Number(found[1]);
}
