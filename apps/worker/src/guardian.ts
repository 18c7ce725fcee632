/**
 * The guardian: between worker and runner, small enough to be trusted with the deadline.
 *
 * Invariants: the runner is in a process group of its own, and that whole group is killed at the deadline or when the worker
 * is gone; "lost" is said only after it has been reaped, so that nothing of it can still act; and once an effect has been
 * given up, no answer of its runner is passed on.
 *
 * The worker's end is noticed twice: by the end of the pipe here, and by the parent-death signal that setpriv armed.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ActRequest, Reply, Request } from './messages.ts';
import { LIFELINE_DESCRIPTOR, LOCK_DESCRIPTOR, receiveReplies, receiveRequests, send } from './messages.ts';

const RUNNER = fileURLToPath(new URL('./runner.js', import.meta.url));
/** MiB; measured to cost no time. */
const RESTART_PAUSE_MS = 200;
const SMALL = ['--max-semi-space-size=4', '--max-old-space-size=256'];

interface InHand {
  readonly request: ActRequest;
  readonly timer: NodeJS.Timeout;
  given: 'awaited' | 'deadline' | 'given-up';
}

let inHand: InHand | undefined;
let runner = startRunner();

receiveRequests(process.stdin, onRequest, () => {
  // The worker is gone: whatever it asked for must not go on. Its receipt stays, and recovery decides.
  killGroup(runner);
  process.exit(0);
});

function startRunner(): ChildProcess {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, ...SMALL, RUNNER], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', LOCK_DESCRIPTOR, LIFELINE_DESCRIPTOR],
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new TypeError('the runner has no pipes');
  // A runner that is gone is noticed by its exit, not by a failed write.
  stdin.on('error', () => undefined);
  receiveReplies(stdout, (reply) => onReply(child, reply));
  child.once('error', () => process.exit(1));
  // `close` comes after exit and after its last line was read, so an answer is never overtaken by its own death.
  child.once('close', () => onEnd(child));
  return child;
}

function onRequest(request: Request): void {
  if (request.type === 'give-up') {
    if (inHand?.request.inHand.effectId !== request.effectId || inHand.given !== 'awaited') return;
    inHand.given = 'given-up';
    killGroup(runner);
    return;
  }
  if (request.type === 'act') {
    const timer = setTimeout(() => {
      if (inHand?.request !== request || inHand.given !== 'awaited') return;
      inHand.given = 'deadline';
      killGroup(runner);
    }, request.deadlineMs);
    inHand = { request, timer, given: 'awaited' };
  }
  if (runner.stdin !== null) send(runner.stdin, request);
}

function onReply(from: ChildProcess, reply: Reply): void {
  if (from !== runner) return;
  if (reply.type === 'acted') {
    if (inHand?.request.inHand.effectId !== reply.effectId || inHand.given !== 'awaited') return;
    clearTimeout(inHand.timer);
    inHand = undefined;
  }
  send(process.stdout, reply);
}

function onEnd(child: ChildProcess): void {
  if (child !== runner) return;
  // Children of the runner, if it had any, are of its group.
  killGroup(child);
  const given = inHand;
  inHand = undefined;
  // One that ends at once, say for a setting that it cannot read, must not be started in a tight loop.
  setTimeout(() => (runner = startRunner()), RESTART_PAUSE_MS);
  process.stderr.write(
    `${JSON.stringify({ level: 'warn', process: 'guardian', message: 'runner ended; another one is started' })}\n`,
  );
  if (given === undefined) return;
  clearTimeout(given.timer);
  send(process.stdout, {
    type: 'lost',
    effectId: given.request.inHand.effectId,
    why: given.given === 'awaited' ? 'runner-ended' : given.given,
  });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // No such group: all of it has ended.
  }
}
