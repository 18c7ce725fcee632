/**
 * How an act talks to the Docker daemon. An act looks before it changes anything and changes one thing, so it may be begun
 * again as long as every change was answered; a change whose answer did not come ends it as unknown.
 */
import { setTimeout } from 'node:timers/promises';
import { Daemon, DaemonError } from '#docker';
import type { EffectKind } from '#protocol';
import { effectTraits, isRepeated } from '#protocol';
import type { ActContext, ActResult } from './contract.ts';
import { refused, unknown } from './contract.ts';

/** Between our giving up and the guardian's kill, so that what is known can still be told. */
const TELL_MS = 2_000;
const PAUSE_MS = 250;
/** No look waits for anything. A daemon that does not answer one in this time hangs, and the next may meet it awake. */
const LOOK_MS = 30_000;

export interface TimeLeft {
  /** Milliseconds; 0 when it is over. */
  left(): number;
  /** Milliseconds that one call may take, so that its end can still be told. Never 0: the last look comes after the time. */
  forCall(): number;
  /** Waits a little. @returns false when the time is over */
  pause(ms?: number): Promise<boolean>;
}

/** Monotonic: a clock that is set does not end an act, nor prolong it. */
export function timeLeft(deadlineMs: number): TimeLeft {
  const acting = Math.max(deadlineMs - TELL_MS, deadlineMs / 2);
  const end = performance.now() + acting;
  const left = (): number => Math.max(0, end - performance.now());
  return {
    left,
    forCall: () => left() + (deadlineMs - acting) / 2,
    async pause(ms = PAUSE_MS) {
      await setTimeout(Math.min(ms, left()));
      return left() > 0;
    },
  };
}

/**
 * Begins the act again for as long as its time lasts while the daemon is away, hangs or fails at being looked at. When the
 * time is over, that alone is never a refusal of what recovery can make again: a daemon that is away says nothing about a
 * thing, and a refused removal would block for good what only had to wait.
 */
export async function withDaemon(
  context: ActContext,
  kind: EffectKind,
  act: (daemon: Daemon, time: TimeLeft) => Promise<ActResult>,
): Promise<ActResult> {
  const time = timeLeft(context.deadlineMs);
  // A change that got no answer is unknown, and may be one that must not be made twice: it has all the time there is.
  const deadlines = { look: () => Math.min(LOOK_MS, time.forCall()), change: () => time.forCall() };
  let changes = 0;
  for (;;) {
    const daemon = new Daemon(context.dockerHost, deadlines);
    try {
      return await act(daemon, time);
    } catch (error) {
      if (!(error instanceof DaemonError)) throw error;
      changes += daemon.changes;
      if (mayBeginAgain(error, kind) && (await time.pause())) continue;
      return resultOf(error, changes > 0 || isRepeated(kind));
    }
  }
}

/** Nothing is still under way: what was asked for before has been answered, or changes nothing. */
function mayBeginAgain({ kind, ofChange }: DaemonError, effect: EffectKind): boolean {
  switch (kind) {
    case 'unreachable':
      return true;
    case 'lost':
      return !ofChange || effectTraits(effect).class === 'harmless';
    case 'failed':
      return !ofChange;
    case 'already':
    case 'absent':
    case 'conflict':
    case 'refused':
      return false;
  }
}

const CODES = { unreachable: 'daemon_unreachable', lost: 'daemon_lost', failed: 'daemon_failed' } as const;

function resultOf({ kind, message }: DaemonError, isOpen: boolean): ActResult {
  switch (kind) {
    case 'unreachable':
    case 'lost':
    case 'failed':
      return isOpen ? unknown(CODES[kind], message) : refused(CODES[kind], message);
    case 'already':
    case 'absent':
    case 'conflict':
    case 'refused':
      return refused('refused_by_daemon', message);
  }
}
