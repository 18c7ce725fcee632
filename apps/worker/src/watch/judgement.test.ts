import { describe, expect, test } from '@jest/globals';
import type { ServiceObservation } from '#catalog';
import type { ContainerInfo } from '#docker';
import { MISSING, observationOf, rememberingEnd, SETTLING_MS, startAgainAt, whyDegraded } from './judgement.ts';

const NEVER = '0001-01-01T00:00:00Z';
const STARTED = '2026-01-02T03:04:05.678901234Z';
const ENDED = '2026-01-02T04:00:00.1Z';
/** As it is told. */
const ENDED_SECONDS = '2026-01-02T04:00:00Z';
const NOW = Date.parse('2026-01-02T04:00:01Z');

function container(state: Partial<ContainerInfo['State']>, restarts = 0): ContainerInfo {
  const State = {
    Status: 'running',
    Running: true,
    Paused: false,
    Restarting: false,
    OOMKilled: false,
    ExitCode: 0,
    StartedAt: STARTED,
    FinishedAt: NEVER,
    ...state,
  };
  return { State, RestartCount: restarts } as unknown as ContainerInfo;
}

const RUNNING: ServiceObservation = { state: 'running', restarts: 0, startedAt: STARTED };
const EXITED = { Status: 'exited', Running: false, ExitCode: 3, FinishedAt: ENDED };

describe('what an inspection says', () => {
  test.each<readonly [string, Partial<ContainerInfo['State']>, Partial<ServiceObservation>]>([
    ['running', {}, RUNNING],
    ['created', { Status: 'created', Running: false, StartedAt: NEVER }, { state: 'created', restarts: 0 }],
    ['exited', EXITED, { state: 'exited', exitCode: 3, outOfMemory: false, startedAt: STARTED, finishedAt: ENDED }],
    [
      'out of memory',
      { ...EXITED, ExitCode: 137, OOMKilled: true },
      { state: 'exited', exitCode: 137, outOfMemory: true },
    ],
    ['restarting', { ...EXITED, Status: 'restarting', Running: true, Restarting: true }, { state: 'restarting' }],
    ['paused', { Status: 'paused', Paused: true }, { state: 'paused' }],
    ['healthy', { Health: { Status: 'healthy', FailingStreak: 0, Log: [] } }, { state: 'running' }],
    ['still being checked', { Health: { Status: 'starting', FailingStreak: 0, Log: [] } }, { state: 'running' }],
    ['unhealthy', { Health: { Status: 'unhealthy', FailingStreak: 3, Log: [] } }, { state: 'unhealthy' }],
  ])('of one that is %s', (_what, state, expected) => {
    expect(observationOf(container(state))).toMatchObject(expected);
  });

  test('what has not happened has no time, and no exit code', () => {
    expect(observationOf(container({ Status: 'created', Running: false, StartedAt: NEVER }))).toEqual({
      state: 'created',
      restarts: 0,
    });
  });
});

test('how it ended stays known while it runs again, and is not taken from another end', () => {
  const ended = observationOf(container(EXITED));
  const again = observationOf(container({ FinishedAt: ENDED }, 1));
  expect(again).not.toHaveProperty('exitCode');
  expect(rememberingEnd(again, ended)).toMatchObject({ state: 'running', exitCode: 3, finishedAt: ENDED });
  expect(rememberingEnd(again, null)).toBe(again);
  expect(rememberingEnd({ ...again, finishedAt: STARTED }, ended)).not.toHaveProperty('exitCode');
});

test('a start that fails is tried again after twice as long each time, and once an hour at last', () => {
  const pauses = [1, 2, 3, 20].map(
    (count) => startAgainAt({ count, last_at: ENDED_SECONDS }) - Date.parse(ENDED_SECONDS),
  );
  expect(pauses).toEqual([30_000, 60_000, 120_000, 3_600_000]);
});

describe('why an environment is degraded', () => {
  const why = (observation: ServiceObservation, now = NOW): string | undefined =>
    whyDegraded(
      [
        { name: 'first', observation: RUNNING },
        { name: 'api', observation },
      ],
      now,
    )?.code;

  test.each<readonly [ServiceObservation, string]>([
    [MISSING, 'service_missing'],
    [{ state: 'created', restarts: 0 }, 'service_stopped'],
    [{ state: 'paused', restarts: 0 }, 'service_paused'],
    [{ state: 'unhealthy', restarts: 0 }, 'service_unhealthy'],
    [{ state: 'exited', restarts: 0 }, 'service_exited'],
    [{ state: 'restarting', restarts: 4 }, 'service_restarting'],
  ])('%j', (observation, code) => {
    expect(why(observation)).toBe(code);
  });

  test('it is not, while all services run', () => {
    expect(why(RUNNING)).toBeUndefined();
    expect(whyDegraded([], NOW)).toBeUndefined();
  });

  test('one that was started again has to show first that it stays', () => {
    const again: ServiceObservation = { ...RUNNING, restarts: 1, startedAt: ENDED, exitCode: 3, finishedAt: ENDED };
    expect(why(again)).toBe('service_restarted');
    expect(why(again, Date.parse(ENDED) + SETTLING_MS)).toBeUndefined();
  });

  test('the sentence names the service, how it ended, and when', () => {
    const observation = observationOf(container({ ...EXITED, OOMKilled: true }));
    expect(whyDegraded([{ name: 'api', observation }], NOW)).toEqual({
      code: 'service_exited',
      message: `service api ran out of memory at ${ENDED_SECONDS}`,
    });
    expect(whyDegraded([{ name: 'api', observation: { ...observation, outOfMemory: false } }], NOW)?.message).toBe(
      `service api ended with exit code 3 at ${ENDED_SECONDS}`,
    );
  });
});
