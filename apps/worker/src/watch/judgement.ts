/** What a container's inspection says of a service, and what its services make of an environment. Pure. */
import type { ServiceObservation, ServiceState } from '#catalog';
import type { ContainerInfo } from '#docker';
import type { Reason } from '#kernel';

/** One that has been started again this lately has not shown yet that it stays. Milliseconds. */
export const SETTLING_MS = 30_000;

export const MISSING: ServiceObservation = { state: 'missing', restarts: 0 };

export function observationOf({ State, RestartCount }: ContainerInfo): ServiceObservation {
  const { ExitCode, OOMKilled, Running, Restarting, StartedAt, FinishedAt } = State;
  const started = isTime(StartedAt);
  const finished = isTime(FinishedAt);
  return {
    state: stateOf(State),
    restarts: RestartCount,
    // While it runs the daemon says nothing of how it ended before.
    ...(finished && (!Running || Restarting) ? { exitCode: ExitCode, outOfMemory: OOMKilled } : {}),
    ...(finished ? { finishedAt: FinishedAt } : {}),
    ...(started ? { startedAt: StartedAt } : {}),
  };
}

/** How it ended stays known while it runs again, as far as it was seen. */
export function rememberingEnd(now: ServiceObservation, before: ServiceObservation | null): ServiceObservation {
  if (now.exitCode !== undefined || before?.exitCode === undefined || before.finishedAt !== now.finishedAt) return now;
  const { exitCode, outOfMemory } = before;
  return { ...now, exitCode, ...(outOfMemory === undefined ? {} : { outOfMemory }) };
}

function stateOf(state: ContainerInfo['State']): ServiceState {
  if (state.Restarting) return 'restarting';
  if (state.Paused) return 'paused';
  if (state.Running) return state.Health?.Status === 'unhealthy' ? 'unhealthy' : 'running';
  return state.Status === 'created' ? 'created' : 'exited';
}

/** The daemon writes year 1 for what has not happened. */
function isTime(text: string): boolean {
  return text !== '' && !text.startsWith('0001-');
}

export interface SeenService {
  readonly name: string;
  readonly observation: ServiceObservation;
}

/**
 * @param now milliseconds of the same clock as the daemon's
 * @returns the first service that does not hold, and why; undefined when all do
 */
export function whyDegraded(services: readonly SeenService[], now: number): Reason | undefined {
  for (const { name, observation } of services) {
    const reason = whyNot(name, observation, now);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function whyNot(
  name: string,
  { state, restarts, startedAt, ...end }: ServiceObservation,
  now: number,
): Reason | undefined {
  const service = `service ${name}`;
  switch (state) {
    case 'missing':
      return { code: 'service_missing', message: `the container of ${service} is gone from the host` };
    case 'created':
      return { code: 'service_stopped', message: `${service} is not started` };
    case 'paused':
      return { code: 'service_paused', message: `${service} is paused` };
    case 'unhealthy':
      return { code: 'service_unhealthy', message: `${service} runs, and its image's health check fails` };
    case 'exited':
      return { code: 'service_exited', message: `${service} ${ending(end)}` };
    case 'restarting':
      return { code: 'service_restarting', message: `${service} ${ending(end)}, and is being started again` };
    case 'running': {
      const settling = startedAt !== undefined && restarts > 0 && now - Date.parse(startedAt) < SETTLING_MS;
      return settling
        ? {
            code: 'service_restarted',
            message: `${service} ${ending(end)}, and was started again at ${toSeconds(startedAt)}`,
          }
        : undefined;
    }
    default:
      return state satisfies never;
  }
}

function ending({ exitCode, outOfMemory, finishedAt }: Partial<ServiceObservation>): string {
  const code = exitCode === undefined ? '' : ` with exit code ${exitCode}`;
  const how = outOfMemory === true ? 'ran out of memory' : `ended${code}`;
  return finishedAt === undefined ? how : `${how} at ${toSeconds(finishedAt)}`;
}

/** The daemon tells nanoseconds; a sentence is for people. */
function toSeconds(time: string): string {
  return time.replace(/\.\d+/, '');
}

const START_PAUSE_FIRST_MS = 30_000;
const START_PAUSE_MAX_MS = 3_600_000;

/** When services whose start has failed are to be started once more: each time after twice as long. Milliseconds. */
export function startAgainAt(failed: { readonly count: number; readonly last_at: string }): number {
  return Date.parse(failed.last_at) + Math.min(START_PAUSE_FIRST_MS * 2 ** (failed.count - 1), START_PAUSE_MAX_MS);
}
