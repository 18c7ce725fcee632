/**
 * How an act talks to the Docker daemon. An act looks before it changes anything and changes one thing, so it may be begun
 * again as long as every answer came; an answer that did not come ends it as unknown.
 */
import { setTimeout } from 'node:timers/promises';
import { Daemon, DaemonError } from '#docker';
import type { ActContext, ActResult } from './contract.ts';
import { refused, unknown } from './contract.ts';

/** Between our giving up and the guardian's kill, so that what is known can still be told. */
const TELL_MS = 2_000;
const PAUSE_MS = 250;

export interface TimeLeft {
  /** Milliseconds; 0 when it is over. */
  left(): number;
  /** Waits a little. @returns false when the time is over */
  pause(ms?: number): Promise<boolean>;
}

/** Monotonic: a clock that is set does not end an act, nor prolong it. */
export function timeLeft(deadlineMs: number): TimeLeft {
  const end = performance.now() + Math.max(deadlineMs - TELL_MS, deadlineMs / 2);
  const left = (): number => Math.max(0, end - performance.now());
  return {
    left,
    async pause(ms = PAUSE_MS) {
      await setTimeout(Math.min(ms, left()));
      return left() > 0;
    },
  };
}

export async function withDaemon(
  context: ActContext,
  act: (daemon: Daemon, time: TimeLeft) => Promise<ActResult>,
): Promise<ActResult> {
  const time = timeLeft(context.deadlineMs);
  let changes = 0;
  for (;;) {
    const daemon = new Daemon(context.dockerHost, Math.min(60_000, Math.max(1, time.left())));
    try {
      return await act(daemon, time);
    } catch (error) {
      if (!(error instanceof DaemonError)) throw error;
      changes += daemon.changes;
      if (error.kind === 'unreachable' && (await time.pause())) continue;
      return resultOf(error, changes);
    }
  }
}

function resultOf(error: DaemonError, changes: number): ActResult {
  switch (error.kind) {
    case 'unreachable':
      return changes === 0
        ? refused('daemon_unreachable', error.message)
        : unknown('daemon_unreachable', error.message);
    case 'lost':
      return changes === 0 ? refused('daemon_lost', error.message) : unknown('daemon_lost', error.message);
    case 'failed':
      return changes === 0 ? refused('daemon_failed', error.message) : unknown('daemon_failed', error.message);
    case 'already':
    case 'absent':
    case 'conflict':
    case 'refused':
      return refused('refused_by_daemon', error.message);
  }
}
