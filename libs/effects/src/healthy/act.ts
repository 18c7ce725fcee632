/**
 * Waits until a service is well, or cannot become so any more. It only looks, so it may be done again at any time.
 *
 * A daemon that is away says nothing about the service: it is waited for, up to the service's own deadline, and then nothing
 * is known.
 */
import type { ContainerInfo } from '#docker';
import { Daemon, isDaemonError } from '#docker';
import type { Reason } from '#kernel';
import type { EffectSpecs } from '#protocol';
import type { Act } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import { timeLeft } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { lastLines } from '../last-lines.ts';
import { redaction } from '../redaction.ts';
import { tryToReach } from './probe.ts';

/** Of one question to the daemon: none of them waits for anything. */
const LOOK_DEADLINE_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Without any check, a service that still runs after this is taken for well. */
const STEADY_MS = 2_000;

type Look = { readonly is: 'well' } | { readonly is: 'lost'; readonly reason: Reason } | Waiting;
interface Waiting {
  readonly is: 'waiting';
  readonly why: string;
  /** The daemon said nothing, so nothing is known about the service. */
  readonly daemonIs?: 'unreachable' | 'lost';
}

export const act: Act<'healthy'> = async (context, spec) => {
  const { installation, dockerHost, deadlineMs, secrets } = context;
  const { serviceId, containerId, health } = spec;
  const daemon = new Daemon(dockerHost, LOOK_DEADLINE_MS);
  const hide = redaction(secrets.files);
  const time = timeLeft(deadlineMs);
  const unwellAt = performance.now() + health.deadlineSeconds * 1_000;
  const watch = new Watch(daemon, spec);
  let why = '';
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const look = await watch.look((labels) => isOurs(labels, { installation, kind: 'service', id: serviceId }));
    if (look.is === 'well') return applied({});
    if (look.is === 'lost') {
      const words = look.reason.code === 'foreign_object' ? '' : await lastLines(daemon, containerId, hide);
      return refused(look.reason.code, hide(look.reason.message) + words);
    }
    if (look.why !== why) context.progress(`waits for ${watch.name}: ${hide(look.why)}`);
    why = look.why;
    const left = unwellAt - performance.now();
    if (left > 0 && (await time.pause(Math.min(pause, left)))) continue;
    if (look.daemonIs !== undefined) return unknown(`daemon_${look.daemonIs}`, `${watch.name} was not seen: ${why}`);
    break;
  }
  const words = await lastLines(daemon, containerId, hide);
  return refused(
    'service_unhealthy',
    `the service was not well after ${health.deadlineSeconds} s: ${hide(why)}${words}`,
  );
};

class Watch {
  readonly #daemon: Daemon;
  readonly #spec: EffectSpecs['healthy'];
  #steadySince: { readonly startedAt: string; readonly at: number } | undefined;
  /** For people. */
  name = 'the service';

  constructor(daemon: Daemon, spec: EffectSpecs['healthy']) {
    this.#daemon = daemon;
    this.#spec = spec;
  }

  async look(ours: (labels: ContainerInfo['Config']['Labels']) => boolean): Promise<Look> {
    try {
      const { containerId } = this.#spec;
      const container = await this.#daemon.container(containerId);
      if (container?.Id !== containerId)
        return { is: 'lost', reason: { code: 'service_missing', message: `there is no container ${containerId}` } };
      if (!ours(container.Config.Labels))
        return { is: 'lost', reason: { code: 'foreign_object', message: `container ${containerId} is not ours` } };
      this.name = container.Config.Labels['surefoot.service'] ?? this.name;
      const ended = whyEnded(container);
      return ended === undefined ? await this.#health(container) : { is: 'lost', reason: ended };
    } catch (error) {
      if (!isDaemonError(error)) throw error;
      const { kind, message } = error;
      return { ...waitingFor(message), ...(kind === 'unreachable' || kind === 'lost' ? { daemonIs: kind } : {}) };
    }
  }

  async #health(container: ContainerInfo): Promise<Look> {
    const { health, networkId, engineContainerId } = this.#spec;
    if (health.http === undefined && health.tcp === undefined) return this.#ownCheck(container);
    const endpoints = Object.values(container.NetworkSettings.Networks);
    const address = endpoints.find(({ NetworkID }) => NetworkID === networkId)?.IPAddress ?? '';
    if (address === '') return waitingFor('an address in its network');
    const tried = await tryToReach(this.#daemon, engineContainerId, address, health);
    return tried.well ? { is: 'well' } : waitingFor(tried.why);
  }

  /** The image's; an image without one has a service that is well while it runs. */
  #ownCheck({ State }: ContainerInfo): Look {
    // The types say that there always is one.
    const own = State.Health as { readonly Status?: string } | undefined;
    if (own?.Status !== undefined && own.Status !== 'none')
      return own.Status === 'healthy' ? { is: 'well' } : waitingFor(`its image’s own check says “${own.Status}”`);
    const now = performance.now();
    if (this.#steadySince?.startedAt !== State.StartedAt) this.#steadySince = { startedAt: State.StartedAt, at: now };
    return now - this.#steadySince.at >= STEADY_MS ? { is: 'well' } : waitingFor('that it keeps running');
  }
}

function waitingFor(why: string): Waiting {
  return { is: 'waiting', why };
}

/** Nothing starts it again before it is published, so waiting would be for nothing. */
function whyEnded({ State, HostConfig }: ContainerInfo): Reason | undefined {
  if (State.Running) return undefined;
  if (State.OOMKilled) {
    const megabytes = Math.floor((HostConfig.Memory ?? 0) / (1024 * 1024));
    return { code: 'out_of_memory', message: `the service needed more memory than its limit of ${megabytes} MiB` };
  }
  return { code: 'service_exits', message: `the service ended by itself, with exit code ${State.ExitCode}` };
}
