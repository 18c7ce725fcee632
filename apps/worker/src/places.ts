/**
 * Whether this host and its engines are the ones that the catalog means: age and pin, compared at start and before every
 * claim (invariants 7 and 11). A difference refuses new work, names what differs, and opens a case; it is looked at again
 * each time, so that work goes on by itself once the right thing is back in place.
 */
import { statfsSync } from 'node:fs';
import type { Catalog, EngineRow, EngineStartAnswer, OpenJob } from '#catalog';
import {
  acceptPlace,
  engineAge,
  hostAge,
  loadEngine,
  loadEngines,
  noteEngineWaiting,
  refusePlace,
  requestEngineStart,
} from '#catalog';
import { EngineAway, findTokens, isStopped, observePin } from '#engines';
import { CONTROL_DATABASE, readEngineAge, readKnownTokens } from '#fencing';
import type { Logger, Reason } from '#kernel';
import { FREE_SPACE_MIN_BYTES } from '#kernel';
import type { AgeRecord } from '#protocol';
import { compareAge, pinDifferences, registeringEffects } from '#protocol';
import type { Client } from '#postgres';
import { errorSentence } from '#postgres';
import { readEpoch, UnreadableRecord } from '#receipts';
import type { Settings } from '#settings';
import { enginePlace } from '#settings';
import { WatchedConnection } from './watched-connection.ts';

export class Places {
  readonly #catalog: Catalog;
  readonly #settings: Settings;
  readonly #log: Logger;
  readonly #connections = new Map<string, WatchedConnection>();
  /** Places with an open refusal, so that writing happens on change only. */
  readonly #refused = new Set<string>();
  readonly #waiting = new Map<string, string | undefined>();
  /** Engines that are stopped and failed to start: when that is tried again. */
  readonly #startsLater = new Map<string, string>();
  /** Places that have been compared by this process. */
  readonly #checked = new Set<string>();
  #known: readonly ReturnType<typeof enginePlace>[] = [];
  #hostIdentity = '';

  constructor(catalog: Catalog, settings: Settings, log: Logger) {
    this.#catalog = catalog;
    this.#settings = settings;
    this.#log = log;
  }

  /** The identity that the host's epoch carries; known once the host has been checked. */
  get hostIdentity(): string {
    return this.#hostIdentity;
  }

  /** Why a job cannot be claimed now; undefined when nothing is in its way. */
  async hindrance(job: OpenJob, known?: EngineRow): Promise<string | undefined> {
    const { hostId, home } = this.#settings;
    const [host, engine] = await Promise.all([this.checkHost(), this.#engineHindrance(job, known)]);
    if (host !== undefined) return `host ${hostId} is refused: ${host.message}`;
    const { bavail, bsize } = statfsSync(home);
    if (bavail * bsize < FREE_SPACE_MIN_BYTES)
      return `host ${hostId} has less than ${FREE_SPACE_MIN_BYTES / 2 ** 20} MiB free under ${home}`;
    return engine;
  }

  async #engineHindrance(job: OpenJob, known: EngineRow | undefined): Promise<string | undefined> {
    // A job of an engine that could not be made is run, to its failure.
    if (job.kind === 'engine.create' || job.kind === 'engine.start' || job.engineState === 'failed') return undefined;
    if (job.engineState === 'creating') return `engine ${job.engineName} is being created`;
    return this.checkEngine(known ?? (await loadEngine(this.#catalog, job.engineId)));
  }

  /** @returns the refusal, which is on record */
  async checkHost(): Promise<Reason | undefined> {
    return this.recordHost(await this.compareHost());
  }

  /** What differs between this host and the one that the catalog means. */
  async compareHost(): Promise<Reason | undefined> {
    const { hostId, paths } = this.#settings;
    const { record, settledClaim } = await hostAge(this.#catalog, hostId);
    this.#hostIdentity = record.identity;
    return compareEpoch(hostId, paths.epoch, record, settledClaim);
  }

  /** The host's refusal, or its end. */
  recordHost(reason: Reason | undefined): Promise<Reason | undefined> {
    return this.#record({ hostId: this.#settings.hostId }, reason);
  }

  /** @returns why the engine takes no work now: it is away, or it is refused */
  async checkEngine(engine: EngineRow): Promise<string | undefined> {
    const { hostId } = this.#settings;
    if (engine.pin === null) return `engine ${engine.name} has no pin yet`;
    try {
      const [age, pin, found] = await Promise.all([
        engineAge(this.#catalog, engine.id, registeringEffects()),
        observePin(this.#settings.dockerHost, engine.pin, this.#reader(engine)),
        this.#reader(engine)(readEngineAge),
      ]);
      const differences = pinDifferences(engine.pin, pin);
      const reason =
        differences.length > 0
          ? { code: 'pin', message: `engine ${engine.name} is not the one that was pinned: ${differences.join('; ')}` }
          : compareAge(`engine ${engine.name}`, age.record, age.settledClaim, found);
      const refusal = await this.#record({ hostId, engineId: engine.id }, reason);
      return await this.#noteWaiting(engine, refusal?.message);
    } catch (error) {
      if (!(error instanceof EngineAway)) throw error;
      const later = this.#startsLater.get(engine.id);
      const away = `engine ${engine.name} cannot be reached: ${error.message}`;
      return this.#noteWaiting(engine, later === undefined ? away : `${away}; ${later}`);
    }
  }

  /** Shown with the engine; written when it changes, and once at start. */
  async #noteWaiting(engine: EngineRow, waitingFor: string | undefined): Promise<string | undefined> {
    if (!this.#waiting.has(engine.id) || this.#waiting.get(engine.id) !== waitingFor)
      await noteEngineWaiting(this.#catalog, engine.id, waitingFor ?? null);
    this.#waiting.set(engine.id, waitingFor);
    return waitingFor;
  }

  /** Compares every pinned engine, and asks for a start of those whose container is stopped. */
  async lookAtEngines(): Promise<void> {
    const { hostId, dockerHost } = this.#settings;
    const engines = await loadEngines(this.#catalog, hostId);
    this.#known = engines.map((engine) => enginePlace(this.#settings, engine));
    for (const engine of engines) {
      const hindered = (await this.checkEngine(engine)) !== undefined;
      const stopped = hindered && engine.pin !== null && (await isStopped(dockerHost, engine.pin.containerId));
      const start = stopped
        ? await this.#catalog.transaction((tx) => requestEngineStart(tx, hostId, engine.id))
        : undefined;
      if (start?.answer === 'asked')
        this.#log.warn('engine is stopped; its start is asked for', { engine: engine.name });
      if (start?.answer === 'later') this.#startsLater.set(engine.id, startsLater(start));
      else this.#startsLater.delete(engine.id);
    }
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
  }

  /** Engines as of the last look. */
  get known(): readonly ReturnType<typeof enginePlace>[] {
    return this.#known;
  }

  /**
   * How many of these tokens left a trace: at the engine, or as labels in the daemon.
   * @throws EngineAway when one of them cannot be asked
   */
  async countKnownTokens(engineId: string, tokens: readonly string[]): Promise<number> {
    const engine = await loadEngine(this.#catalog, engineId);
    const labelled = await findTokens(this.#settings.dockerHost, tokens);
    // A server that is stopped has no backend, and what has no receipt was never sent to it.
    if (engine.pin === null || (await isStopped(this.#settings.dockerHost, engine.pin.containerId)))
      return labelled.length;
    // On another engine than the one that is meant, nothing that is missing counts as absent.
    const refusal = await this.checkEngine(engine);
    if (refusal !== undefined) throw new EngineAway(refusal);
    const registered = await this.#reader(engine)((client) => readKnownTokens(client, tokens));
    return new Set([...labelled, ...registered]).size;
  }

  #reader(engine: EngineRow): <T>(work: (client: Client) => Promise<T>) => Promise<T> {
    const connection =
      this.#connections.get(engine.id) ?? new WatchedConnection(enginePlace(this.#settings, engine), CONTROL_DATABASE);
    this.#connections.set(engine.id, connection);
    return async (work) => {
      try {
        return await connection.read(work);
      } catch (error) {
        throw new EngineAway(`engine ${engine.name}: ${errorSentence(error)}`, { cause: error });
      }
    };
  }

  /** A refusal opens a case once; its end closes the case. */
  async #record(
    place: { readonly hostId: string; readonly engineId?: string },
    reason: Reason | undefined,
  ): Promise<Reason | undefined> {
    const key = place.engineId ?? place.hostId;
    if (reason !== undefined) {
      if (!this.#refused.has(key)) {
        this.#log.error('place is refused', { code: reason.code, detail: reason.message });
        await refusePlace(this.#catalog, place, reason);
        this.#refused.add(key);
      }
    } else if (this.#refused.delete(key) || !this.#checked.has(key)) {
      await acceptPlace(this.#catalog, place);
    }
    this.#checked.add(key);
    return reason;
  }
}

function startsLater({ failures, reason, at }: EngineStartAnswer & { readonly answer: 'later' }): string {
  const why = reason === null ? '' : ` (${reason.message})`;
  const often = failures === 1 ? 'its last start' : 'each of its last starts';
  return `it is stopped, ${often} failed${why}, and it is tried again at ${at.toISOString()}`;
}

/** A torn record is no absent one (invariant 7): it refuses by itself. */
function compareEpoch(hostId: string, path: string, record: AgeRecord, settledClaim: number): Reason | undefined {
  try {
    return compareAge(`host ${hostId}`, record, settledClaim, readEpoch(path));
  } catch (error) {
    if (error instanceof UnreadableRecord) return { code: 'unreadable_record', message: error.message };
    throw error;
  }
}
