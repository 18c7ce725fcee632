// `npm run bench [-- --json FILE] [--n 30] [--home DIR] [--large]`: DESIGN §13, measured; `--services N [--networks M]`: what
// a host holds of environments with services. See docs/BENCH.md.
import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { Settings } from '#settings';
import { measureConnectionTime } from './connection-time.ts';
import type { CreatesAndDeletes } from './create-and-delete.ts';
import { measureCreatesAndDeletes } from './create-and-delete.ts';
import { countEnvironments, fillCatalog } from './filler.ts';
import { measureGatewayReads } from './gateway-reads.ts';
import type { Installation } from './installation.ts';
import { openInstallation } from './installation.ts';
import type { Options } from './options.ts';
import { parseOptions } from './options.ts';
import { Pauses } from './pauses.ts';
import { memoryMb, restartWorker } from './processes.ts';
import { Product } from './product.ts';
import { RecordTimes } from './record-times.ts';
import type { Goal, Measure, Report, Unmeasured } from './report.ts';
import { against, alone, beside, machine, renderMeasures, renderPhases } from './report.ts';
import { Run } from './run.ts';
import { measureServices } from './services.ts';
import { summarise } from './statistics.ts';
import { phasesOf } from './where-time-goes.ts';

const MANY = 10_000;
const RESTARTS = 10;
const IDLE_MS = 10_000;
/** Share of the cores that may be busy while nothing of ours has anything to do. */
const QUIET = 0.15;
const BASELINE = 'one process, open connections, no records';

const NOT_BUILT: readonly Unmeasured[] = [
  { name: 'create with the warm pool', goal: { of: 'ratio', atMost: 0.35 }, notBuilt: 'warm pool' },
  { name: 'rotate', goal: { of: 'ratio', atMost: 1.15 }, notBuilt: 'rotate' },
];

async function bench(options: Options): Promise<void> {
  const before = machine();
  const installation = await openInstallation(options.home);
  try {
    const { services } = options;
    const { measures, phases, failures, pauses } = await (services === undefined
      ? measureAll(installation, options)
      : measureServices(installation, { ...options, services }));
    const report: Report = {
      machine: before,
      command: options.command,
      date: new Date().toISOString(),
      measures,
      phases,
      pauses,
      failures,
    };
    print(report);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    if (failures.length > 0) process.exitCode = 1;
  } finally {
    await installation.close();
  }
}

async function measureAll(installation: Installation, { n, large }: Options): Promise<Run> {
  const run = new Run();
  const { measures, phases } = run;
  const { settings, catalog, engine, isPrivate } = installation;
  const pauses = new Pauses(settings.home);
  const records = new RecordTimes(settings.paths);
  const product = await Product.open(installation, records);
  try {
    await run.part('memory after start', async () => measures.push(await measureMemory(settings, 'after start')));

    const few = await run.part(`create and delete, ${n} rounds`, async () => {
      const { creates, deletes } = await measureCreatesAndDeletes(installation, product, pauses, n);
      measures.push(...compared('create environment', creates), ...compared('delete environment', deletes));
      phases['create'] = phasesOf(creates);
      phases['delete'] = phasesOf(deletes);
      return creates;
    });
    measures.push(...NOT_BUILT);

    await withEnvironment(product, async (environmentId) => {
      await run.part('gateway reads', async () =>
        measures.push(await measureGatewayReads(installation, environmentId, n)),
      );
      if (!large) return;
      await run.part('connections, with the roles of ten thousand environments and without', async () =>
        measures.push(await measureConnectionTime(engine, await product.appLogin(environmentId))),
      );
    });

    if (isPrivate)
      await run.part(`create and delete with ten thousand environments in the catalog, ${n} rounds`, async () => {
        await fillCatalog(catalog, engine, MANY);
        const { creates } = await measureCreatesAndDeletes(installation, product, pauses, n);
        phases['create, 10,000 environments'] = phasesOf(creates);
        if (few !== undefined) measures.push(manyAgainstFew(creates, few));
      });
    await run.part('memory after the run', async () => measures.push(await measureMemory(settings, 'after the run')));
    await run.part('worker restarts', async () => measures.push(await measureRestart(installation)));
    run.pauses = pauses.found();
    return run;
  } finally {
    pauses.close();
    await product.close();
    records.close();
  }
}

async function withEnvironment(product: Product, work: (environmentId: string) => Promise<void>): Promise<void> {
  const { environmentId } = await product.create(`bench-kept-${Date.now()}`);
  try {
    await work(environmentId);
  } finally {
    await product.delete(environmentId);
  }
}

/** As a client sees it, and from the catalog's own times, which leave out the request and the last commit. */
function compared(name: string, pairs: CreatesAndDeletes['creates']): readonly Measure[] {
  const goal: Goal = { of: 'ratio', atMost: 1.15 };
  const baseline = pairs.map(({ baselineMs }) => baselineMs);
  return [
    beside(
      { name, unit: 'ms', goal },
      pairs.map(({ ours }) => ours.endedAt - ours.sentAt),
      BASELINE,
      baseline,
    ),
    beside(
      { name: `${name}, createdAt to finishedAt`, unit: 'ms' },
      pairs.map(({ ours }) => ours.finishedAt - ours.createdAt),
      BASELINE,
      baseline,
    ),
  ];
}

/** Not in turns, since the catalog has many or few: what the baseline did meanwhile says how far to trust it. */
function manyAgainstFew(many: CreatesAndDeletes['creates'], few: CreatesAndDeletes['creates']): Measure {
  const ours = (pairs: CreatesAndDeletes['creates']): readonly number[] =>
    pairs.map(({ ours: sample }) => sample.endedAt - sample.sentAt);
  const meanwhile = [few, many].map((pairs) => summarise(pairs.map(({ baselineMs }) => baselineMs)).median.toFixed(0));
  return against(
    {
      name: 'create, 10,000 environments against 10',
      unit: 'ms',
      goal: { of: 'ratio', atMost: 1.5 },
      note: `in the catalog only; the baseline, which has none, went from ${meanwhile.join(' to ')} ms meanwhile`,
    },
    ours(many),
    'the creates before',
    ours(few),
  );
}

async function measureMemory(settings: Settings, when: string): Promise<Measure> {
  await setTimeout(IDLE_MS);
  const samples: number[] = [];
  let parts = '';
  for (let look = 0; look < 5; look += 1) {
    const found = memoryMb(settings);
    samples.push([...found.values()].reduce((sum, mb) => sum + mb, 0));
    parts = [...found].map(([name, mb]) => `${name} ${mb.toFixed(0)}`).join(', ');
    await setTimeout(1_000);
  }
  return alone(
    { name: `memory (PSS), idle ${when}`, unit: 'MB', goal: { of: 'median', atMost: 350 }, note: parts },
    samples,
  );
}

async function measureRestart(installation: Installation): Promise<Measure> {
  const environments = await countEnvironments(installation.catalog);
  try {
    return alone(
      {
        name: 'worker restart to ready, no receipts',
        unit: 'ms',
        goal: { of: 'median', atMost: 1_000 },
        note: `${environments} environments in the catalog`,
      },
      await restartWorker(installation.settings, RESTARTS),
    );
  } finally {
    // What is private is removed next.
    if (!installation.isPrivate) await installation.restore();
  }
}

function print({ machine: on, measures, phases, failures, pauses }: Report): void {
  const { cpu, cores, memoryMb: memory, node, kernel, load } = on;
  console.log(`\n${cpu}, ${cores} cores, ${memory} MB, Node ${node}, Linux ${kernel}, load ${load.toFixed(1)} before`);
  const busy = `In the pauses the cores were ${(pauses.busy * 100).toFixed(0)} % busy`;
  console.log(`${busy}, and a durable write took ${pauses.syncMs.median.toFixed(2)} ms.`);
  if (pauses.busy > QUIET) console.log('The machine was NOT QUIET: take every figure with care.');
  console.log('');
  console.log(renderMeasures(measures));
  for (const [title, found] of Object.entries(phases)) console.log(`\n${renderPhases(title, found)}`);
  for (const failure of failures) console.log(`\nFAILED  ${failure}`);
}

try {
  await bench(parseOptions(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  process.exitCode = 1;
}
