/** An operation, followed to its end or to a deadline. A gateway that goes away in between is waited for. */
import { setTimeout } from 'node:timers/promises';
import { isOpen } from '#protocol';
import type { Effect, Operation } from './api.ts';
import { readEvents } from './event-stream.ts';
import { behindBlock, CommandFailure, EXIT } from './failure.ts';
import { isUnreachable, type RestClient } from './rest-client.ts';
import { printable, type Terminal } from './terminal.ts';

/** Without a word from the gateway for this long it counts as unreachable. */
const SILENCE_MS = 30_000;
const AGAIN_AFTER_MS = 500;

export interface Wait {
  readonly timeoutSeconds: number;
}

export class Follower {
  readonly #client: RestClient;
  readonly #terminal: Terminal;
  readonly #progress: boolean;
  readonly #giveUpAtMs: number;
  readonly #wait: Wait;

  /** @param progress effects are told as they settle, a line each. One follower is one command: its time is counted from here. */
  constructor(client: RestClient, terminal: Terminal, wait: Wait, progress: boolean) {
    this.#client = client;
    this.#terminal = terminal;
    this.#progress = progress;
    this.#wait = wait;
    this.#giveUpAtMs = performance.now() + wait.timeoutSeconds * 1_000;
  }

  /**
   * @returns the operation, ended or blocked
   * @throws CommandFailure `timeout`, `unreachable`; `blocked` when it waits for an operation that is
   */
  async follow(operationId: string): Promise<Operation> {
    const told = new Told(this.#progress ? this.#terminal : undefined);
    let latest: Operation | undefined;
    let heardAtMs = performance.now();
    for (;;) {
      try {
        for await (const operation of this.#events(operationId)) {
          latest = operation;
          heardAtMs = performance.now();
          told.tell(operation);
          if (hasEnded(operation)) return operation;
          await this.#refuseBehindBlock(operation);
        }
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        if (performance.now() - heardAtMs > SILENCE_MS) throw error;
      }
      this.#refuseLate(operationId, latest);
      await setTimeout(AGAIN_AFTER_MS);
    }
  }

  /**
   * A while, for what passes by itself and is no operation.
   * @param what is waited for the end of, as a sentence
   * @throws CommandFailure `timeout`
   */
  async pause(what: string): Promise<void> {
    if (this.#progress) this.#terminal.status(printable(`  … ${what}`));
    await setTimeout(AGAIN_AFTER_MS);
    if (performance.now() >= this.#giveUpAtMs)
      throw new CommandFailure(EXIT.timedOut, 'timeout', `after ${this.#wait.timeoutSeconds} s ${what}`, {
        next: 'to go on waiting: the same command',
      });
  }

  /** What it waits for is told anew when that gets blocked, so that each of these comes with an event. */
  async #refuseBehindBlock(operation: Operation): Promise<void> {
    const { id, state, waitingFor, environmentId } = operation;
    if (state !== 'queued' || waitingFor === undefined || environmentId === null) return;
    const { items } = await this.#client.page<Operation>('/v1/operations', {
      environment: environmentId,
      state: 'blocked',
      limit: '1',
    });
    const [blocked] = items;
    if (blocked !== undefined && blocked.id !== id) throw behindBlock(operation, blocked);
  }

  #refuseLate(operationId: string, latest: Operation | undefined): void {
    if (performance.now() < this.#giveUpAtMs) return;
    const inHand = latest === undefined ? '' : inHandText(latest);
    const state =
      latest === undefined
        ? ''
        : `, it is ${latest.state}${waitingText(latest)}${inHand === '' ? '' : `, at ${inHand}`}`;
    throw new CommandFailure(
      EXIT.timedOut,
      'timeout',
      `operation ${operationId} has not ended in ${this.#wait.timeoutSeconds} s${state}`,
      {
        next: `it goes on by itself; to go on waiting: surefoot op watch ${operationId}`,
        ...(latest === undefined ? {} : { operation: latest }),
      },
    );
  }

  async *#events(operationId: string): AsyncGenerator<Operation> {
    const path = `/v1/operations/${operationId}`;
    // The stream's first event would say the same; but a plain read tells a refusal from a stream that ended early.
    const end = AbortSignal.timeout(Math.max(1, Math.ceil(this.#giveUpAtMs - performance.now())));
    const now = await this.#client.get<Operation>(path, end);
    yield now;
    if (hasEnded(now)) return;
    try {
      for await (const { event, data } of readEvents(await this.#client.stream(`${path}/events`, end)))
        if (event === 'operation') yield JSON.parse(data) as Operation;
    } catch (error) {
      // The deadline, or a connection that was cut in mid-stream: the next read tells.
      if (error instanceof CommandFailure && !isUnreachable(error)) throw error;
    }
  }
}

/** Blocked is an end for whoever waits: only a decision goes on from there. */
function hasEnded({ state }: Operation): boolean {
  return state === 'blocked' || !isOpen(state);
}

/** Says each thing once. */
class Told {
  readonly #terminal: Terminal | undefined;
  #effects = 0;
  #waitingFor: string | undefined;

  /** @param terminal of whoever watches */
  constructor(terminal: Terminal | undefined) {
    this.#terminal = terminal;
  }

  tell(operation: Operation): void {
    const settled = operation.effects.filter(({ outcome }) => outcome !== 'pending');
    for (const effect of settled.slice(this.#effects)) this.#say(`  ${effectText(effect)}`);
    this.#effects = Math.max(this.#effects, settled.length);
    if (operation.waitingFor !== undefined && operation.waitingFor !== this.#waitingFor)
      this.#say(`  waiting for ${operation.waitingFor}`);
    this.#waitingFor = operation.waitingFor;
    const inHand = inHandText(operation);
    this.#terminal?.status(inHand === '' ? '' : printable(`  … ${inHand}`));
  }

  #say(line: string): void {
    this.#terminal?.err(printable(line));
  }
}

export function effectText({ kind, service = '', outcome, startedAt, settledAt }: Effect): string {
  const took = settledAt === null ? '' : `${Date.parse(settledAt) - Date.parse(startedAt)} ms`;
  return `${kind.padEnd(18)} ${outcome.padEnd(8)} ${took.padStart(9)}  ${service}`.trimEnd();
}

/** The effect in hand, and how far it is. */
function inHandText({ state, effects, progress }: Operation): string {
  if (state !== 'running') return '';
  const pending = effects.findLast(({ outcome }) => outcome === 'pending');
  const effect = pending === undefined ? undefined : [pending.kind, pending.service].filter(Boolean).join('  ');
  return [effect, progress].filter((part) => part !== undefined).join(': ');
}

export function waitingText({ waitingFor }: Operation): string {
  return waitingFor === undefined ? '' : `, waiting for ${waitingFor}`;
}
