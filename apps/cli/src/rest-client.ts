/**
 * The gateway's REST interface. A change carries an Idempotency-Key, so that one whose answer was lost can be asked for
 * again without being done twice.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { ProblemDocument } from './api.ts';
import type { Gateway } from './connection.ts';
import { CommandFailure, EXIT, Refusal } from './failure.ts';

const ANSWER_TIMEOUT_MS = 30_000;
/** A gateway that restarts, or whose catalog does, is back within these. */
const RETRY_AFTER_MS = [200, 600, 1_500];
/** Passed on by proxies that found no gateway behind them. */
const NOT_OURS = new Set([502, 504]);

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export class RestClient {
  readonly #gateway: Gateway;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** @param signal ends it before its own time */
  get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.#persist('GET', path, undefined, signal);
  }

  post<T>(path: string, body?: object): Promise<T> {
    return this.#persist('POST', path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.#persist('DELETE', path);
  }

  /** Every page of a list. */
  async list<T>(path: string, query: Readonly<Record<string, string | undefined>> = {}): Promise<readonly T[]> {
    const items: T[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<T> = await this.page(path, { ...query, cursor });
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return items;
  }

  page<T>(path: string, query: Readonly<Record<string, string | null | undefined>>): Promise<Page<T>> {
    const given = Object.entries(query).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return this.get(`${path}?${new URLSearchParams(given).toString()}`);
  }

  /** The bytes of an event stream. @throws as the others, without a second try */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send('GET', path, { accept: 'text/event-stream' }, undefined, signal);
    if (!response.ok || response.body === null) throw await refusalOf(response, this.#gateway.url);
    return response.body;
  }

  async #persist<T>(method: string, path: string, body?: object, until?: AbortSignal): Promise<T> {
    const headers = method === 'GET' ? {} : { 'idempotency-key': randomUUID() };
    for (let tries = 0; ; tries += 1) {
      try {
        const late = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
        const signal = until === undefined ? late : AbortSignal.any([late, until]);
        const response = await this.#send(method, path, headers, body, signal);
        if (!response.ok) throw await refusalOf(response, this.#gateway.url);
        return (await readJson(response, this.#gateway.url)) as T;
      } catch (error) {
        const waitMs = RETRY_AFTER_MS[tries];
        if (waitMs === undefined || until?.aborted === true || !isUnreachable(error)) throw error;
        await setTimeout(waitMs);
      }
    }
  }

  async #send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const { url, apiKey } = this.#gateway;
    try {
      return await fetch(`${url}${path}`, {
        method,
        headers: {
          ...headers,
          authorization: `Bearer ${apiKey}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: 'error',
        signal,
      });
    } catch (error) {
      throw unreachable(url, reasonOf(error), error);
    }
  }
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof CommandFailure && error.exit === EXIT.unreachable;
}

function unreachable(url: string, why: string, cause?: unknown): CommandFailure {
  return new CommandFailure(EXIT.unreachable, 'unreachable', `the gateway at ${url} cannot be reached: ${why}`, {
    next: 'is it running? On its machine: npm start, or surefoot doctor. Elsewhere: check SUREFOOT_URL',
    cause,
  });
}

async function refusalOf(response: Response, url: string): Promise<CommandFailure> {
  if (NOT_OURS.has(response.status)) return unreachable(url, `status ${response.status}`);
  const found = (await readJson(response, url)) as Partial<ProblemDocument> | null;
  if (typeof found?.code !== 'string')
    return unreachable(url, `status ${response.status}, not from a gateway of Surefoot`);
  return new Refusal({
    ...found,
    code: found.code,
    title: found.title ?? found.code,
    detail: found.detail ?? found.code,
  });
}

async function readJson(response: Response, url: string): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw unreachable(url, reasonOf(error), error);
  }
  try {
    return text === '' ? null : JSON.parse(text);
  } catch (error) {
    throw unreachable(url, `status ${response.status}, not from a gateway of Surefoot`, error);
  }
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string') return code;
    if (cause.name === 'TimeoutError') return `no answer in ${ANSWER_TIMEOUT_MS / 1_000} s`;
    if (cause.cause === undefined) return cause.message;
  }
  return 'it did not answer';
}
