/** A log, followed: lines as they come, until the gateway says why it ends. */
import { LOG_ENDS, type ExitCode, type LogEnd, type LogLine } from '#kernel';
import { readEvents } from './event-stream.ts';
import { CommandFailure, EXIT } from './failure.ts';
import type { RestClient } from './rest-client.ts';

/** The gateway gives a sign of life every few seconds. */
const SILENCE_MS = 30_000;

const EXIT_OF = {
  complete: EXIT.done,
  stopped: EXIT.done,
  unreadable: EXIT.failed,
  time_limit: EXIT.timedOut,
  daemon_unreachable: EXIT.unreachable,
  host_unavailable: EXIT.unreachable,
  broker_unavailable: EXIT.unreachable,
  gateway_stopping: EXIT.unreachable,
} as const satisfies Record<LogEnd, ExitCode>;

export interface LogListener {
  onLine(line: LogLine): void;
  onMissing(lines: number): void;
}

/**
 * @returns why it ended well
 * @throws CommandFailure when it did not; `next` says from where to go on
 */
export async function followLog(client: RestClient, path: string, listener: LogListener): Promise<string> {
  const silence = new Silence();
  let lastAt: string | undefined;
  try {
    for await (const { event, data } of readEvents(silence.watch(await client.stream(path, silence.signal)))) {
      if (event === 'line') {
        const line = JSON.parse(data) as LogLine;
        lastAt = line.at;
        listener.onLine(line);
      }
      if (event === 'gap') listener.onMissing((JSON.parse(data) as { readonly missing: number }).missing);
      if (event === 'end') return ended((JSON.parse(data) as { readonly reason: string }).reason, lastAt);
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw lost(lastAt, error);
  } finally {
    silence.end();
  }
  throw lost(lastAt);
}

function ended(reason: string, lastAt: string | undefined): string {
  // A gateway that is newer than this program may have more of them.
  const known = Object.hasOwn(LOG_ENDS, reason) ? (reason as LogEnd) : undefined;
  const exit = known === undefined ? EXIT.failed : EXIT_OF[known];
  const text = known === undefined ? `the log has ended: ${reason}` : LOG_ENDS[known];
  if (known === 'stopped') return `${text}; it may be started again; ${goOn(lastAt).next}`;
  if (exit === EXIT.done) return text;
  throw new CommandFailure(exit, reason, text, goOn(lastAt));
}

function lost(lastAt: string | undefined, cause?: unknown): CommandFailure {
  return new CommandFailure(EXIT.unreachable, 'unreachable', 'the gateway went away while the log was followed', {
    ...goOn(lastAt),
    cause,
  });
}

function goOn(lastAt: string | undefined): { readonly next: string } {
  return { next: `to go on: the same command${lastAt === undefined ? '' : ` with --since ${lastAt}`}` };
}

/** Bytes that come, or an end. */
class Silence {
  readonly #controller = new AbortController();
  #timer = this.#start();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  async *watch(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      clearTimeout(this.#timer);
      this.#timer = this.#start();
      yield chunk;
    }
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#controller.abort();
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(), SILENCE_MS);
  }
}
