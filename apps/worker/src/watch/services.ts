/**
 * Watches the containers of services on this host, beside the jobs and without changing anything outside: what it sees goes
 * to the catalog as dated facts, and makes an environment degraded, or ready again.
 *
 * It looks by itself every few seconds; the daemon's events only make a look come sooner. Nothing is said while the daemon
 * does not answer: what was seen keeps its date.
 */
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Catalog, Observed, ServiceObservation, WatchedService } from '#catalog';
import {
  CatalogFateUnknown,
  CatalogUnavailable,
  judgeEnvironment,
  noteObservations,
  requestServicesStart,
  watchedServices,
} from '#catalog';
import type { ContainerState } from '#docker';
import { Daemon, isDaemonError } from '#docker';
import type { Logger, Reason } from '#kernel';
import type { Settings } from '#settings';
import { MISSING, observationOf, rememberingEnd, startAgainAt, whyDegraded } from './judgement.ts';

const LOOK_INTERVAL_MS = 3_000;
/** What has not changed is dated anew this often, and looked at closely. */
const DATE_INTERVAL_MS = 60_000;
/** Events come in bursts: a container that dies is several. */
const EVENT_PAUSE_MS = 200;
const CALL_DEADLINE_MS = 10_000;

export interface WatchParts {
  readonly settings: Pick<Settings, 'dockerHost' | 'hostId' | 'installation'>;
  readonly catalog: Catalog;
  readonly log: Logger;
  readonly stopping: AbortSignal;
}

export async function watchServices(parts: WatchParts): Promise<void> {
  const watch = new ServiceWatch(parts);
  await Promise.all([watch.listen(), watch.look()]);
}

class ServiceWatch {
  readonly #parts: WatchParts;
  readonly #labels: readonly string[];
  /** Containers to which something has happened since they were last inspected. */
  readonly #stirred = new Set<string>();
  /** Container id → what the list said when it was last inspected. */
  readonly #states = new Map<string, string>();
  #datedAt = Number.NEGATIVE_INFINITY;
  /** The first look has been: what is found stopped at it was stopped with the host, or with the daemon. */
  #started = false;
  /** Environments whose services are to be started. */
  readonly #toStart = new Set<string>();
  #wake: () => void = () => undefined;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#labels = [`surefoot.installation=${parts.settings.installation}`, 'surefoot.kind=service'];
  }

  /** Events, for as long as the daemon gives them. A look comes anyhow. */
  async listen(): Promise<void> {
    const { settings, stopping } = this.#parts;
    while (!stopping.aborted) {
      try {
        const daemon = new Daemon(settings.dockerHost, CALL_DEADLINE_MS);
        await daemon.watchContainers(this.#labels, (id) => this.#stir(id), stopping);
      } catch (error) {
        if (!isDaemonError(error)) throw error;
      }
      await pause(LOOK_INTERVAL_MS, stopping);
    }
  }

  async look(): Promise<void> {
    const { stopping, log } = this.#parts;
    while (!stopping.aborted) {
      try {
        await this.#lookOnce();
      } catch (error) {
        const away = isDaemonError(error) || error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown;
        if (!away) log.error('watching services failed; it is tried again', { error });
      }
      await this.#untilNextLook();
    }
  }

  #stir(containerId: string): void {
    this.#stirred.add(containerId);
    this.#wake();
  }

  async #untilNextLook(): Promise<void> {
    const { stopping } = this.#parts;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (this.#stirred.size === 0) await pause(LOOK_INTERVAL_MS, AbortSignal.any([stopping, woken.signal]));
    if (this.#stirred.size > 0) await pause(EVENT_PAUSE_MS, stopping);
  }

  async #lookOnce(): Promise<void> {
    const { catalog, settings } = this.#parts;
    const services = await watchedServices(catalog, settings.hostId);
    const first = !this.#started;
    this.#started = true;
    if (services.length === 0) {
      this.#stirred.clear();
      this.#states.clear();
      return;
    }
    const dating = performance.now() - this.#datedAt >= DATE_INTERVAL_MS;
    const daemon = new Daemon(settings.dockerHost, CALL_DEADLINE_MS);
    const listed = new Map((await daemon.containerStates(this.#labels)).map((one) => [one.id, one]));
    const seen = new Map<string, ServiceObservation>();
    const news: Observed[] = [];
    for (const service of services) {
      const observation = await this.#observe(daemon, service, listed, dating);
      seen.set(service.id, observation);
      if (dating || !isSame(service.observed, observation)) news.push({ serviceId: service.id, observation });
    }
    if (news.length > 0) await noteObservations(catalog, news);
    if (dating) this.#datedAt = performance.now();
    for (const id of this.#states.keys()) if (!listed.has(id)) this.#states.delete(id);
    await this.#judge(services, seen);
    await this.#startAgain(services, seen, first);
  }

  /**
   * What was stopped with the host is started, and what could not be is tried again, later each time. Anything else that
   * ends is the daemon's to start again, or somebody has stopped it on purpose.
   */
  async #startAgain(
    services: readonly WatchedService[],
    seen: ReadonlyMap<string, ServiceObservation>,
    first: boolean,
  ): Promise<void> {
    const { catalog, settings, log } = this.#parts;
    const stopped = services.filter(({ id }) => ['exited', 'created'].includes(seen.get(id)?.state ?? ''));
    if (first) for (const { environment_id: id } of stopped) this.#toStart.add(id);
    for (const { environment_id: id, failed_starts: failed } of stopped)
      if (failed !== null && Date.now() >= startAgainAt(failed)) this.#toStart.add(id);
    const still = new Set(stopped.map(({ environment_id: id }) => id));
    for (const environmentId of this.#toStart) {
      // One that somebody works on now is asked for at a later look, if it is stopped then.
      const asked =
        still.has(environmentId) &&
        (await catalog.transaction((tx) => requestServicesStart(tx, settings.hostId, environmentId)));
      if (asked) log.info('services are stopped; their start is asked for', { environmentId });
      if (asked || !still.has(environmentId)) this.#toStart.delete(environmentId);
    }
  }

  /** Inspected when there may be news; otherwise it is as it was. */
  async #observe(
    daemon: Daemon,
    { identities, observed }: WatchedService,
    listed: ReadonlyMap<string, ContainerState>,
    dating: boolean,
  ): Promise<ServiceObservation> {
    const id = identities?.containerId ?? '';
    const listing = listed.get(id);
    if (listing === undefined) return MISSING;
    const stirred = this.#stirred.delete(id);
    const known = observed !== null && this.#states.get(id) === listing.state;
    if (known && !stirred && !dating) return observed;
    const container = await daemon.container(id);
    if (container === undefined) return MISSING;
    this.#states.set(id, listing.state);
    return rememberingEnd(observationOf(container), observed);
  }

  async #judge(services: readonly WatchedService[], seen: ReadonlyMap<string, ServiceObservation>): Promise<void> {
    const { catalog, settings, log } = this.#parts;
    const byEnvironment = Map.groupBy(services, ({ environment_id }) => environment_id);
    for (const [environmentId, own] of byEnvironment) {
      const reason = whyDegraded(
        own.map(({ id, name }) => ({ name, observation: seen.get(id) ?? MISSING })),
        Date.now(),
      );
      if (!isNews(own, reason)) continue;
      const told = await catalog.transaction((tx) => judgeEnvironment(tx, settings.hostId, environmentId, reason));
      if (told) log.info('environment was judged', { environmentId, outcome: reason?.code ?? 'holds' });
    }
  }
}

/** Asked of what was just read: most looks have nothing to tell. */
function isNews([first]: readonly WatchedService[], reason: Reason | undefined): boolean {
  const told = first?.environment_reason ?? undefined;
  return told?.code !== reason?.code || told?.message !== reason?.message;
}

function isSame(one: ServiceObservation | null, other: ServiceObservation): boolean {
  return one !== null && isDeepStrictEqual(one, other);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}
