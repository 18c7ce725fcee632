/**
 * One log, from the daemon to its reader. An answer that nobody takes ends it, and while nothing is written a sign of life
 * asks the same; so no log is read for longer than somebody wants it.
 */
import type { LogAnswer, LogRefusalCode, LogRequest } from '#broker';
import type { ContainerInfo, Daemon } from '#docker';
import { isDaemonError } from '#docker';
import type { LogEnd, LogLine } from '#kernel';
import { LOG_ENDS } from '#kernel';
import { Batch, Newest } from './log-batches.ts';

export interface LogSource {
  readonly daemon: Pick<Daemon, 'container' | 'logs'>;
  readonly installation: string;
}

/** @param bytes 0 for what is small. @returns whether somebody takes it */
export type Send = (answer: LogAnswer, bytes: number) => Promise<boolean>;

/** Lines wait for each other this long. */
const BATCH_MS = 200;
/** Of a container whose log has ended: three seconds in all. */
const LOOKS_AT_END = 11;
const LOOK_PAUSE_MS = 300;
/** Well below what the reader takes for silence. */
const SIGN_OF_LIFE_MS = 4_000;

/**
 * Returns when the reader has been told the end, or is gone; the log is closed by `ending` alone, which is the caller's.
 * @param ending aborted with a `LogEnd`
 */
export async function streamLog(
  source: LogSource,
  request: LogRequest,
  send: Send,
  ending: AbortSignal,
): Promise<void> {
  const reader = new Reader(send);
  try {
    const opened = await open(source, request, ending);
    if ('code' in opened) await reader.refuse(opened.code, opened.message);
    else await pass(source, request, opened, reader, ending);
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error;
  }
}

type Log = AsyncGenerator<readonly LogLine[]>;

interface Opened {
  readonly container: ContainerInfo;
  readonly log: Log;
}

interface Refused {
  readonly code: LogRefusalCode;
  readonly message: string;
}

const NOT_FOUND: Refused = { code: 'not_found', message: 'the container of the service is not there' };

async function open(
  { daemon, installation }: LogSource,
  request: LogRequest,
  ending: AbortSignal,
): Promise<Opened | Refused> {
  try {
    const container = await daemon.container(request.containerId);
    if (container === undefined || !isServiceOf(installation, container)) return NOT_FOUND;
    const { tail, since, follow } = request;
    const query = { tail, follow, ...(since === undefined ? {} : { since }), terminal: container.Config.Tty };
    return { container, log: await daemon.logs(container.Id, query, ending) };
  } catch (error) {
    if (!isDaemonError(error)) throw error;
    if (ending.aborted) return { code: 'host_unavailable', message: LOG_ENDS.host_unavailable };
    return error.kind === 'absent' ? NOT_FOUND : { code: 'daemon_unreachable', message: error.message };
  }
}

/** An engine's log is no service's, and another installation's is not ours to show. */
function isServiceOf(installation: string, { Config: { Labels } }: ContainerInfo): boolean {
  return Labels['surefoot.installation'] === installation && Labels['surefoot.kind'] === 'service';
}

async function pass(
  { daemon }: LogSource,
  { follow }: LogRequest,
  { container, log }: Opened,
  reader: Reader,
  ending: AbortSignal,
): Promise<void> {
  await reader.lines([], 0);
  try {
    if (!follow) {
      const truncated = await passNewest(log, reader);
      await reader.end('complete', truncated);
      return;
    }
    await passAsTheyCome(log, reader);
  } catch (error) {
    if (!isDaemonError(error)) throw error;
    await reader.end(ending.aborted ? (ending.reason as LogEnd) : endOf(error.kind === 'failed'));
    return;
  }
  await reader.end(await whyItEnded(daemon, container));
}

function endOf(answered: boolean): LogEnd {
  return answered ? 'unreadable' : 'daemon_unreachable';
}

/** @returns whether older lines were left out */
async function passNewest(log: Log, reader: Reader): Promise<boolean> {
  const newest = new Newest();
  for await (const lines of log) for (const line of lines) newest.add(line);
  const batch = new Batch();
  for (const line of newest.lines) await addTo(batch, line, reader);
  await flush(batch, reader);
  return newest.truncated;
}

async function passAsTheyCome(log: Log, reader: Reader): Promise<void> {
  const batch = new Batch();
  for (let next = take(log); ;) {
    const waitMs = batch.isEmpty ? SIGN_OF_LIFE_MS : batch.sinceMs + BATCH_MS - performance.now();
    const taken = waitMs > 0 ? await inTime(next, waitMs) : undefined;
    if (taken === undefined) {
      await flush(batch, reader);
      continue;
    }
    if (!('value' in taken)) {
      await flush(batch, reader);
      if (taken.error === undefined) return;
      throw taken.error;
    }
    for (const line of taken.value) await addTo(batch, line, reader);
    next = take(log);
  }
}

type Taken = { readonly value: readonly LogLine[] } | { readonly error: Error | undefined };

/** Never rejects: it is waited for in several turns. */
async function take(log: Log): Promise<Taken> {
  try {
    const next = await log.next();
    return next.done === true ? { error: undefined } : { value: next.value };
  } catch (error) {
    return { error: error as Error };
  }
}

async function addTo(batch: Batch, line: LogLine, reader: Reader): Promise<void> {
  if (batch.add(line, performance.now())) return;
  await flush(batch, reader);
  batch.add(line, performance.now());
}

async function flush(batch: Batch, reader: Reader): Promise<void> {
  const { lines, bytes } = batch.take();
  await reader.lines(lines, bytes);
}

/** @returns undefined when it takes longer. @param work does not reject */
export function inTime<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds, undefined);
    void work.then((result) => {
      clearTimeout(timer);
      resolve(result);
    });
  });
}

/**
 * A daemon that is stopped in an orderly way ends a log like a container that stops. Of one that stops it ends the log first,
 * and says a moment later that it has stopped.
 */
async function whyItEnded(daemon: LogSource['daemon'], { Id, State }: ContainerInfo): Promise<LogEnd> {
  try {
    for (let look = 0; look < LOOKS_AT_END; look += 1) {
      if (look > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_PAUSE_MS));
      const now = await daemon.container(Id);
      if (now?.State.Running !== true || now.State.StartedAt !== State.StartedAt) return 'stopped';
    }
    return 'daemon_unreachable';
  } catch (error) {
    if (!isDaemonError(error)) throw error;
    return 'daemon_unreachable';
  }
}

class ReaderGone extends Error {}

class Reader {
  readonly #send: Send;
  #lines = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  /** @throws ReaderGone */
  async lines(lines: readonly LogLine[], bytes: number): Promise<void> {
    if (!(await this.#send({ seq: this.#lines, lines }, bytes))) throw new ReaderGone();
    this.#lines += lines.length;
  }

  async end(end: LogEnd, truncated = false): Promise<void> {
    await this.#send({ seq: this.#lines, end, truncated }, 0);
  }

  async refuse(code: LogRefusalCode, message: string): Promise<void> {
    await this.#send({ seq: 0, refusal: { code, message } }, 0);
  }
}
