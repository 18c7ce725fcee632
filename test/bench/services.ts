/**
 * What a host holds of environments with a service each: `npm run bench -- --services N`.
 *
 * First N such environments, made, looked at, stopped and started in all ways, and deleted. Then as many bare networks as the
 * host would take, each joined by the engine like an environment's, since that is what grows with them: whatever has to
 * happen while all of them are there must stay within its deadline. docs/BENCH.md says what each figure is.
 */
import { freeSubnet } from '#docker';
import { waitUntil } from '#testing';
import type { Login } from './connection-time.ts';
import { canConnect, connectionsBesideCatalog } from './connection-time.ts';
import type { Made } from './create-and-delete.ts';
import { createInTurns } from './create-and-delete.ts';
import type { Counts, MemoryMb, NetworkTimes, Restart } from './host.ts';
import { Host } from './host.ts';
import type { Installation } from './installation.ts';
import { Pauses } from './pauses.ts';
import type { Sample, SmallService } from './product.ts';
import { Product } from './product.ts';
import { RecordTimes } from './record-times.ts';
import type { Goal, Measure } from './report.ts';
import { against, alone, grown } from './report.ts';
import { Run } from './run.ts';
import { phasesBeside } from './where-time-goes.ts';

const RESTARTS = 3;
/** Of those of each step: the last ones, of which the figure is taken. */
const JOINS = 10;
const STEPS = 4;
const CREATES_AT_MAXIMUM = 5;
/** Of `npm start`, until services that are started one after the other all run. */
const START_AGAIN_MS = { each: 20_000, all: 300_000 };
/** What is given up after so long: one call to the daemon, an effect, the wait for a daemon that is to start. */
const CALL: Goal = { of: 'median', atMost: 60_000 };
const EFFECT_MS = 180_000;
const EFFECT: Goal = { of: 'median', atMost: EFFECT_MS };
const DAEMON: Goal = { of: 'median', atMost: 180_000 };
const WITHOUT = 'without them';

interface Amounts {
  /** Environments with a service. */
  readonly services: number;
  /** Bare networks, in the end. */
  readonly networks: number;
  /** Samples of what is interleaved with a baseline. */
  readonly n: number;
}

/** @param amounts without `networks`: as many as this host takes */
export async function measureServices(
  installation: Installation,
  amounts: Omit<Amounts, 'networks'> & { readonly networks: number | undefined },
): Promise<Run> {
  const run = new Run();
  const pauses = new Pauses(installation.settings.home);
  const records = new RecordTimes(installation.settings.paths);
  const bench = new ServicesBench(installation, await Host.open(installation), records, pauses, run);
  try {
    await bench.open();
    const { serviceNetworksMax } = installation.settings;
    await bench.measure({ ...amounts, networks: amounts.networks ?? serviceNetworksMax });
    run.pauses = pauses.found();
    return run;
  } finally {
    pauses.close();
    await bench.close();
    records.close();
  }
}

/** What is compared before and after. */
interface Look {
  readonly counts: Counts;
  readonly memory: MemoryMb;
  readonly connections: Connections;
  readonly made: Made;
}

type Connections = Awaited<ReturnType<typeof connectionsBesideCatalog>>;

class ServicesBench {
  readonly #installation: Installation;
  readonly #host: Host;
  readonly #records: RecordTimes;
  readonly #pauses: Pauses;
  readonly #run: Run;
  #product: Product | undefined;
  #login: Login | undefined;

  constructor(installation: Installation, host: Host, records: RecordTimes, pauses: Pauses, run: Run) {
    this.#installation = installation;
    this.#host = host;
    this.#records = records;
    this.#pauses = pauses;
    this.#run = run;
  }

  /** Again after whatever takes the catalog's port away. */
  async open(): Promise<void> {
    this.#product = await waitUntil('the catalog takes a listener', () =>
      Product.open(this.#installation, this.#records).catch(() => undefined),
    );
  }

  async close(): Promise<void> {
    await this.#product?.close();
    this.#product = undefined;
  }

  async measure({ services: count, networks, n }: Amounts): Promise<void> {
    const run = this.#run;
    const kept = await this.product.create(`bench-kept-${Date.now()}`);
    this.#login = await this.product.appLogin(kept.environmentId);

    const before = await run.part('without services', () => this.#look(n));
    const creates = await run.part(`create ${count} environments with a service each`, () => this.#create(count));
    if (before === undefined || creates === undefined) return;

    await run.part(`with ${count} environments`, async () => {
      const after = await this.#look(n);
      this.#compare(count, before, after);
      await after.made.deleteInTurns(this.product, this.#pauses);
    });
    await run.part('what is beyond the maximum is refused', () => this.#beyondMaximum(count));
    await run.part('engine restarts', () => this.#engineRestarts(`with ${count} services`));
    await run.part('daemon restarts', () => this.#daemonRestarts(`with ${count} services`, count));
    await run.part('stop and start', () => this.#stopAndStart(`with ${count} services`, count));
    await run.part(`delete ${count} environments`, () => this.#delete(creates, before));
    await before.made.deleteInTurns(this.product, this.#pauses);
    await this.#networks(networks, creates, before);
  }

  get product(): Product {
    if (this.#product === undefined) throw new Error('the product is not open');
    return this.#product;
  }

  get #service(): SmallService {
    return {
      name: 'idle',
      image: this.#installation.settings.engineImage,
      command: ['bash', '-c', 'exec sleep 100000'],
      limits: { memory: '32m' },
    };
  }

  async #look(n: number): Promise<Look> {
    const made = await createInTurns(this.#installation, this.product, this.#pauses, n);
    const found = await this.#connections();
    return { counts: await this.#host.counts(), memory: this.#host.memory(), connections: found, made };
  }

  async #connections(): Promise<Connections> {
    const { engine, settings } = this.#installation;
    if (this.#login === undefined) throw new Error('there is no login');
    return connectionsBesideCatalog(engine, this.#login, settings.catalogUrl);
  }

  /** As it was and is; and each beside the catalog's in the same moment, since the two were taken minutes apart. */
  #tellConnections(state: string, before: Connections, after: Connections): void {
    const name = `connection through the published port, ${state}`;
    const beside = (found: Connections): readonly number[] =>
      found.map(({ engineMs, catalogMs }) => engineMs / catalogMs);
    this.#tell(
      against(
        { name, unit: 'ms' },
        after.map(({ engineMs }) => engineMs),
        WITHOUT,
        before.map(({ engineMs }) => engineMs),
      ),
      against(
        { name: `${name}: of one to the catalog`, unit: '×', goal: { of: 'ratio', atMost: 1.1 } },
        beside(after),
        WITHOUT,
        beside(before),
      ),
    );
  }

  /** The same for creates without a service. */
  #tellCreates(state: string, before: Made, after: Made): void {
    const name = `create without a service, ${state}`;
    const ours = ({ creates }: Made): readonly number[] => creates.map(({ ours: sample }) => tookMs(sample));
    const beside = ({ creates }: Made): readonly number[] =>
      creates.map(({ ours: sample, baselineMs }) => tookMs(sample) / baselineMs);
    this.#tell(
      against(
        { name, unit: 'ms', note: 'claim checks of engine and host included' },
        ours(after),
        WITHOUT,
        ours(before),
      ),
      against(
        { name: `${name}: of one with no records`, unit: '×', goal: { of: 'ratio', atMost: 1.1 } },
        beside(after),
        WITHOUT,
        beside(before),
      ),
    );
  }

  async #create(count: number): Promise<readonly Sample[]> {
    const samples: Sample[] = [];
    for (let number = 0; number < count; number += 1) {
      samples.push(await this.product.create(`bench-service-${number}`, [this.#service]));
      await this.#pauses.take();
    }
    const { first, last } = ends(samples);
    this.#tell(...firstAndLast('create with a service', samples, { of: 'ratio', atMost: 1.5 }));
    this.#run.phases[`create with a service, the last ${last.length} beside the first`] = phasesBeside(last, first);
    await this.#inReach('after their creates', count);
    return samples;
  }

  #compare(count: number, before: Look, after: Look): void {
    const [were, are] = [before.counts, after.counts];
    const more = `beside ${count} environments with services`;
    this.#tellCreates(more, before.made, after.made);
    this.#tellConnections(more, before.connections, after.connections);
    this.#tell(
      ...(['interfaces', 'bridges', 'rules'] as const).map((what) =>
        grown({ name: `${WHAT[what]}, ${count} services`, unit: 'count' }, are[what], WITHOUT, were[what]),
      ),
      ...(['daemon', 'shims', 'worker', 'ours'] as const).map((what) =>
        grown(
          { name: `${MEMORY_OF[what]} (PSS), ${count} services`, unit: 'MB' },
          after.memory[what],
          WITHOUT,
          before.memory[what],
        ),
      ),
    );
  }

  async #beyondMaximum(count: number): Promise<void> {
    const { catalog, settings } = this.#installation;
    const setMaximum = (maximum: number): Promise<unknown> =>
      catalog.query('update hosts set service_networks_max = $1', [maximum]);
    await setMaximum(count);
    try {
      const code = await this.product.refusal('bench-one-too-many', [this.#service]);
      if (code !== 'insufficient_capacity')
        throw new Error(`one more was not refused for capacity: ${code ?? 'taken'}`);
      const note = `with the maximum set to ${count}: ${code}`;
      this.#tell(alone({ name: 'creates refused beyond the maximum', unit: 'count', note }, [1]));
    } finally {
      await setMaximum(settings.serviceNetworksMax);
    }
  }

  async #engineRestarts(state: string): Promise<void> {
    const restarts: Restart[] = [];
    for (let time = 0; time < RESTARTS; time += 1) {
      restarts.push(await this.#host.restartEngine(() => this.#takesLogins()));
      await this.#untilQuiet();
    }
    this.#tellRestarts(`engine's container, ${state}`, restarts, CALL);
  }

  async #daemonRestarts(state: string, count: number): Promise<void> {
    const restarts: Restart[] = [];
    const readyMs: number[] = [];
    for (let time = 0; time < RESTARTS; time += 1) {
      await this.close();
      const startedAt = performance.now();
      const restart = await this.#host.restartDaemon();
      await waitUntil('logins work again', () => this.#takesLogins());
      await this.#untilReady(count, START_AGAIN_MS.all);
      readyMs.push(performance.now() - startedAt);
      restarts.push(restart);
      await this.open();
      await this.#untilQuiet();
    }
    this.#tellRestarts(`private daemon, ${state}`, restarts, DAEMON);
    const name = `private daemon, ${state}: asked to stop → logins, and all environments ready`;
    this.#tell(alone({ name, unit: 'ms' }, readyMs));
    await this.#inReach(`after restarts of engine and daemon, ${state}`, count);
  }

  async #stopAndStart(state: string, count: number): Promise<void> {
    await this.close();
    const startedAt = performance.now();
    await this.#installation.stop();
    const stoppedAt = performance.now();
    await this.#installation.restore();
    const upAt = performance.now();
    await waitUntil('logins work again', () => this.#takesLogins(), { deadlineMs: EFFECT_MS });
    const loginsAt = performance.now();
    await this.#untilReady(count, START_AGAIN_MS.all + count * START_AGAIN_MS.each);
    const readyAt = performance.now();
    this.#tell(
      alone({ name: `npm stop, ${state}`, unit: 'ms' }, [stoppedAt - startedAt]),
      alone({ name: `npm start, ${state}`, unit: 'ms' }, [upAt - stoppedAt]),
      alone({ name: `npm start, ${state}: asked → logins`, unit: 'ms', goal: EFFECT }, [loginsAt - stoppedAt]),
    );
    if (count > 0) {
      const name = `npm start, ${state}: asked → all services run`;
      const note = `${((readyAt - loginsAt) / count / 1_000).toFixed(1)} s for each after the engine`;
      this.#tell(alone({ name, unit: 'ms', note }, [readyAt - stoppedAt]));
    }
    await this.open();
    await this.#untilQuiet();
    if (count > 0) await this.#inReach(`after npm stop and npm start, ${state}`, count);
  }

  async #delete(creates: readonly Sample[], before: Look): Promise<void> {
    const samples: Sample[] = [];
    for (const { environmentId } of creates) {
      samples.push(await this.product.delete(environmentId));
      await this.#pauses.take();
    }
    this.#tell(...firstAndLast('delete with a service', samples, { of: 'ratio', atMost: 1.5 }));
    const [were, are] = [before.counts, await this.#host.counts()];
    const left = COUNTED.map((what) => [what, are[what] - were[what]] as const).filter(([, more]) => more !== 0);
    this.#tell(
      alone(
        {
          name: 'left of them: ' + COUNTED.join(', '),
          unit: 'count',
          goal: { of: 'median', atMost: 0 },
          ...(left.length === 0 ? {} : { note: left.map(([what, more]) => `${what} ${more}`).join(', ') }),
        },
        [left.reduce((total, [, more]) => total + Math.abs(more), 0)],
      ),
    );
  }

  /** In four steps up to `maximum`; what restarts with all of them there is measured at each. */
  async #networks(maximum: number, creates: readonly Sample[], before: Look): Promise<void> {
    const taken = (await this.#host.daemon.networks()).flatMap(({ subnets }) => subnets);
    const step = Math.ceil(maximum / STEPS);
    for (let there = 0; there < maximum; there = Math.min(there + step, maximum)) {
      const number = Math.min(there + step, maximum);
      const state = `with ${number} networks`;
      const done = await this.#run.part(`bare networks: ${number}`, async () => {
        await this.#addNetworks(there, number, taken);
        if (number === maximum) await this.#atMaximum(maximum, creates, before);
        await this.#engineRestarts(state);
        await this.#daemonRestarts(state, 0);
        if (number === maximum) await this.#stopAndStart(state, 0);
        return true;
      });
      if (done !== true) return;
    }
  }

  async #addNetworks(there: number, number: number, taken: string[]): Promise<void> {
    const { networkPool } = this.#installation.settings;
    const times: NetworkTimes[] = [];
    for (let next = there + 1; next <= number; next += 1) {
      const free = freeSubnet(networkPool, taken, 28);
      if (free === undefined) throw new Error(`${networkPool} has no room for ${number} networks`);
      taken.push(free.subnet);
      times.push(await this.#host.addNetwork(`bench-network-${next}`, free));
    }
    const last = times.slice(-JOINS);
    this.#tell(
      alone(
        { name: `a network is made, with ${number} networks`, unit: 'ms' },
        last.map(({ madeMs }) => madeMs),
      ),
      alone(
        { name: `the engine joins it, with ${number} networks`, unit: 'ms', goal: CALL },
        last.map(({ joinedMs }) => joinedMs),
      ),
    );
  }

  async #atMaximum(maximum: number, creates: readonly Sample[], before: Look): Promise<void> {
    const state = `with ${maximum} networks`;
    const { counts, memory } = { counts: await this.#host.counts(), memory: this.#host.memory() };
    this.#tell(
      ...(['interfaces', 'bridges', 'rules'] as const).map((what) =>
        grown(
          { name: `${WHAT[what]}, ${maximum} networks`, unit: 'count' },
          counts[what],
          WITHOUT,
          before.counts[what],
        ),
      ),
      grown(
        { name: `${MEMORY_OF.daemon} (PSS), ${maximum} networks`, unit: 'MB' },
        memory.daemon,
        WITHOUT,
        before.memory.daemon,
      ),
    );
    this.#tellConnections(state, before.connections, await this.#connections());
    await this.#createsAt(state, creates);
  }

  async #createsAt(state: string, creates: readonly Sample[]): Promise<void> {
    const made: Sample[] = [];
    const deleted: Sample[] = [];
    for (let number = 0; number < CREATES_AT_MAXIMUM; number += 1)
      made.push(await this.product.create(`bench-maximum-${number}`, [this.#service]));
    for (const { environmentId } of made) deleted.push(await this.product.delete(environmentId));
    const { first } = ends(creates);
    const name = `create with a service, ${state}`;
    this.#tell(
      against({ name, unit: 'ms' }, made.map(tookMs), 'the first creates', first.map(tookMs)),
      alone({ name: `delete with a service, ${state}`, unit: 'ms' }, deleted.map(tookMs)),
    );
    this.#run.phases[`${name}, beside the first`] = phasesBeside(made, first);
  }

  async #inReach(when: string, count: number): Promise<void> {
    if (count === 0) return;
    const inReach = await this.#host.servicesInReach();
    const name = `services that run and reach their engine ${when}`;
    this.#tell(alone({ name, unit: 'count', goal: { of: 'median', atLeast: count } }, [inReach]));
  }

  #tellRestarts(name: string, restarts: readonly Restart[], goal: Goal): void {
    this.#tell(
      alone(
        { name: `${name}: asked to stop → stopped`, unit: 'ms' },
        restarts.map(({ stoppedMs }) => stoppedMs),
      ),
      alone(
        { name: `${name}: asked to start → answers`, unit: 'ms', goal },
        restarts.map(({ startedMs }) => startedMs),
      ),
    );
  }

  #tell(...measures: readonly Measure[]): void {
    this.#run.measures.push(...measures);
  }

  async #takesLogins(): Promise<boolean> {
    const { engine } = this.#installation;
    if (this.#login === undefined) throw new Error('there is no login');
    return canConnect(engine, this.#login);
  }

  /** Every environment of ours with a service is, and nobody works on any. */
  async #untilReady(count: number, deadlineMs: number): Promise<void> {
    const ready = async (): Promise<boolean> => {
      const running = await this.#host.runningServices().catch(() => -1);
      if (running !== count) return false;
      const [found] = await this.#ask<{ ready: number }>(
        `select count(*)::integer as ready from environments where networks > 0 and state = 'ready'`,
      );
      return found?.ready === count;
    };
    await waitUntil(`${count} environments with services are ready`, ready, { deadlineMs, intervalMs: 100 });
  }

  /** No operation is open, and the engine is ready. */
  async #untilQuiet(): Promise<void> {
    const quiet = async (): Promise<boolean> => {
      const [found] = await this.#ask<{ open: number; resting: number }>(
        `select (select count(*)::integer from operations where state in ('queued', 'running')) as open,
                (select count(*)::integer from engines where state <> 'ready') as resting`,
      );
      return found?.open === 0 && found.resting === 0;
    };
    await waitUntil('no operation is open', quiet, { deadlineMs: START_AGAIN_MS.all, intervalMs: 100 });
  }

  /** Nothing while the catalog is away. */
  async #ask<Row extends object>(question: string): Promise<readonly Row[]> {
    return this.#installation.catalog.query<Row>(question).catch(() => []);
  }
}

const WHAT = {
  interfaces: 'interfaces in the engine',
  bridges: 'bridges of its daemon',
  rules: 'firewall rules',
} as const;

const MEMORY_OF = {
  daemon: 'memory of dockerd',
  shims: 'memory of all containers’ shims',
  worker: 'memory of the worker',
  ours: 'memory of all our processes',
} as const;

const COUNTED = ['containers', 'networks', 'volumes', 'bridges', 'rules', 'interfaces'] as const;

function tookMs({ sentAt, endedAt }: Sample): number {
  return endedAt - sentAt;
}

/** The first ten and the last; of few, half of them. */
function ends(samples: readonly Sample[]): { readonly first: readonly Sample[]; readonly last: readonly Sample[] } {
  const size = Math.min(10, Math.floor(samples.length / 2));
  return { first: samples.slice(0, size), last: samples.slice(-size) };
}

function firstAndLast(name: string, samples: readonly Sample[], goal: Goal): readonly Measure[] {
  const { first, last } = ends(samples);
  return [
    alone({ name: `${name}, all`, unit: 'ms' }, samples.map(tookMs)),
    against(
      { name: `${name}, the last ${last.length} against the first`, unit: 'ms', goal },
      last.map(tookMs),
      `the first ${first.length}`,
      first.map(tookMs),
    ),
  ];
}
