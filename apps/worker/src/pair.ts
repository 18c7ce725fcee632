/**
 * The worker's side of guardian and runner: started ahead of the claim, so that a claim pays no start-up time, and replaced
 * when lost. What it answers is final: after `lost`, both processes that could still act are dead and reaped.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as startTimer } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Logger } from '#kernel';
import type { ActResult } from '#effects';
import type { ActRequest, PrepareRequest, Reply, Request } from './messages.ts';
import { LIFELINE_DESCRIPTOR, receiveReplies, send } from './messages.ts';

const GUARDIAN = fileURLToPath(new URL('./guardian.js', import.meta.url));
/** A guardian that has not answered this long after the deadline it was given is frozen, and is killed. */
const GUARDIAN_MARGIN_MS = 5_000;
const RESTART_PAUSE_MS = 200;
/** From its start until a runner says that it can work; mostly a third of a second. */
const READY_MS = 30_000;
/** It only passes lines on; MiB. */
const SMALL = ['--max-semi-space-size=1', '--max-old-space-size=64'];

export type ActAnswer = ActResult | { readonly outcome: 'lost'; readonly why: string };

interface Waiting {
  readonly effectId: string;
  readonly resolve: (answer: ActAnswer) => void;
  readonly onProgress: (text: string) => void;
  readonly timer: NodeJS.Timeout;
}

export class Pair {
  readonly #log: Logger;
  readonly #lockDescriptor: number;
  #guardian: ChildProcess;
  #waiting: Waiting | undefined;
  readonly #prepared = new Map<string, PrepareRequest>();
  #ready: Promise<void>;
  #onReady: () => void = () => undefined;
  #stopping = false;
  /** The pair in hand is gone, runner included. */
  #closed = true;
  /** Pending while a guardian that ended by itself has no successor yet. */
  #restart: NodeJS.Timeout | undefined;

  constructor(lockDescriptor: number, log: Logger) {
    this.#lockDescriptor = lockDescriptor;
    this.#log = log;
    this.#ready = this.#awaitReady();
    this.#guardian = this.#start();
  }

  /**
   * Returns once a runner can take a request, or `stopping` is aborted.
   * @throws when there is none in time: this host can do nothing then, and says why in its log
   */
  async readyOr(stopping: AbortSignal): Promise<void> {
    const waiting = new AbortController();
    const tooLate = setTimeout(READY_MS, 'late' as const, { signal: AbortSignal.any([waiting.signal, stopping]) });
    const late = await Promise.race([this.#ready, tooLate]).catch(() => undefined);
    waiting.abort();
    if (late === 'late') throw new Error(`no runner is ready after ${READY_MS / 1_000} s`);
  }

  /** Has the runner keep a connection ready; each runner that takes another one's place is told as well. */
  prepare(request: PrepareRequest): void {
    if (this.#prepared.has(request.engine.engineId)) return;
    this.#prepared.set(request.engine.engineId, request);
    this.#write(request);
  }

  /** One effect. Never rejects: whatever happens to the processes, the answer is a result or `lost`. */
  act(request: ActRequest, onProgress: (text: string) => void): Promise<ActAnswer> {
    return new Promise((resolve) => {
      const timer = startTimer(() => {
        this.#log.error('guardian does not answer and is killed', { effectId: request.inHand.effectId });
        // The runner goes with it, by its parent-death signal; the answer comes from `close`.
        this.#guardian.kill('SIGKILL');
      }, request.deadlineMs + GUARDIAN_MARGIN_MS);
      this.#waiting = { effectId: request.inHand.effectId, resolve, onProgress, timer };
      this.#write(request);
    });
  }

  /** Has the runner of this effect killed; `act` then answers that it was given up, unless it has answered already. */
  giveUp(effectId: string): void {
    this.#write({ type: 'give-up', effectId });
  }

  /** Kills both, waits until they are gone, and starts another pair: after an outcome that is not known. */
  async replace(): Promise<void> {
    await this.stop();
    this.#stopping = false;
    this.#ready = this.#awaitReady();
    this.#guardian = this.#start();
  }

  /** Kills both, whatever they are doing, and waits until they are gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const guardian = this.#guardian;
    if (this.#closed) return;
    const closed = once(guardian, 'close');
    // The end of its input makes it kill the runner's group; the signal is for one that is frozen.
    guardian.stdin?.end();
    const timer = startTimer(() => guardian.kill('SIGKILL'), 1_000);
    await closed;
    clearTimeout(timer);
  }

  #start(): ChildProcess {
    const guardian = spawn('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, ...SMALL, GUARDIAN], {
      stdio: ['pipe', 'pipe', 'inherit', this.#lockDescriptor, 'pipe'],
    });
    const { stdin, stdout } = guardian;
    if (stdin === null || stdout === null) throw new TypeError('the guardian has no pipes');
    stdin.on('error', () => undefined);
    receiveReplies(stdout, (reply) => this.#onReply(reply));
    guardian.once('error', (error) => {
      // Without setpriv there is no worker: its supervisor gets to see why.
      throw error;
    });
    const lifeline = guardian.stdio[LIFELINE_DESCRIPTOR];
    // Nothing is ever written to it; it is read so that its end is seen.
    if (lifeline instanceof Socket) lifeline.resume();
    // `close` comes when the process has ended and every pipe of it has closed. The runner holds the lifeline, so it has
    // ended too by then, even when the guardian was killed and could not reap it.
    this.#closed = false;
    guardian.once('close', () => this.#onClose(guardian));
    return guardian;
  }

  #onReply(reply: Reply): void {
    switch (reply.type) {
      case 'ready':
        for (const request of this.#prepared.values()) this.#write(request);
        this.#onReady();
        return;
      case 'acted':
        this.#answer(reply.effectId, reply.result);
        return;
      case 'progress':
        if (this.#waiting?.effectId === reply.effectId) this.#waiting.onProgress(reply.text);
        return;
      case 'lost':
        // The runner that replaces the dead one says `ready` again.
        this.#ready = this.#awaitReady();
        this.#answer(reply.effectId, { outcome: 'lost', why: reply.why });
        return;
      default:
        reply satisfies never;
    }
  }

  #onClose(guardian: ChildProcess): void {
    if (guardian !== this.#guardian) return;
    this.#closed = true;
    const waiting = this.#waiting;
    if (!this.#stopping) {
      this.#log.warn('guardian ended; another one is started', {});
      this.#ready = this.#awaitReady();
      // A guardian that ends at once must not be started in a tight loop.
      this.#restart = startTimer(() => {
        this.#guardian = this.#start();
      }, RESTART_PAUSE_MS);
    }
    if (waiting !== undefined) this.#answer(waiting.effectId, { outcome: 'lost', why: 'guardian-ended' });
  }

  #answer(effectId: string, answer: ActAnswer): void {
    const waiting = this.#waiting;
    if (waiting?.effectId !== effectId) return;
    clearTimeout(waiting.timer);
    this.#waiting = undefined;
    waiting.resolve(answer);
  }

  #awaitReady(): Promise<void> {
    return new Promise((resolve) => {
      this.#onReady = resolve;
    });
  }

  #write(message: Request): void {
    if (this.#guardian.stdin !== null) send(this.#guardian.stdin, message);
  }
}
