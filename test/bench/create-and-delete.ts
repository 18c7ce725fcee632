/** Create and delete, Surefoot and baseline in turns: what makes one of them slow for a while makes the other slow too. */
import { randomBytes } from 'node:crypto';
import type { BaselineEnvironment, Steps } from './baseline.ts';
import { Baseline } from './baseline.ts';
import type { Installation } from './installation.ts';
import type { Pauses } from './pauses.ts';
import type { Product, Sample } from './product.ts';
import { expectSameResult } from './same-result.ts';
import { environmentNames } from '#kernel';

interface Pair<T> {
  readonly ours: Sample;
  /** What the baseline made, or how long its steps took. */
  readonly baseline: T;
  readonly baselineMs: number;
}

export interface CreatesAndDeletes {
  readonly creates: readonly Pair<Steps>[];
  readonly deletes: readonly Pair<Steps>[];
}

/** Code is compiled, plans and pages are cached: not counted. */
const WARM_UP_ROUNDS = 5;

/** The probe's list while one neighbour is ready; the same for both sides. */
const NEVER_REACHED = ['postgres', 'template1', 'surefoot_control'];

/**
 * First all creates, then all deletes. Not one after the other: an ext4 without a journal hands out no inode that was freed
 * in the last minutes, and looks at every one of them for each of a new database's three hundred files. With a delete before
 * each create, CREATE DATABASE took 300 ms instead of 40, on both sides.
 */
export async function measureCreatesAndDeletes(
  installation: Installation,
  product: Product,
  pauses: Pauses,
  n: number,
): Promise<CreatesAndDeletes> {
  const made = await createInTurns(installation, product, pauses, n);
  return { creates: made.creates, deletes: await made.deleteInTurns(product, pauses) };
}

/** Environments that both sides have made, and that are still there. */
export interface Made {
  readonly creates: CreatesAndDeletes['creates'];
  /** All of them go, whatever fails; the neighbour of the probes too. */
  deleteInTurns(product: Product, pauses: Pauses): Promise<CreatesAndDeletes['deletes']>;
}

export async function createInTurns(
  installation: Installation,
  product: Product,
  pauses: Pauses,
  n: number,
): Promise<Made> {
  const run = randomBytes(4).toString('hex');
  const neighbour = await product.create(`bench-${run}-neighbour`);
  const creates: Pair<[BaselineEnvironment, Steps]>[] = [];
  const deleteInTurns: Made['deleteInTurns'] = async (by, between) => {
    const baseline = await Baseline.open(installation.engine);
    const deletes: Pair<Steps>[] = [];
    try {
      await baseline.settle();
      for (const [round, made] of creates.entries()) {
        const ours = (): Promise<Sample> => by.delete(made.ours.environmentId);
        deletes.push(await inTurns(round, between, ours, () => baseline.delete(made.baseline[0])));
      }
      return deletes.slice(WARM_UP_ROUNDS);
    } finally {
      // None after a run that went through; a running installation is left without anything of ours.
      for (const left of creates.slice(deletes.length)) {
        await baseline.delete(left.baseline[0]).catch(() => undefined);
        await by.delete(left.ours.environmentId).catch(() => undefined);
      }
      await baseline.close();
      await by.delete(neighbour.environmentId);
    }
  };
  const baseline = await Baseline.open(installation.engine);
  try {
    const closed = [...NEVER_REACHED, environmentNames(`bench-${run}-neighbour`, neighbour.environmentId).database];
    for (let round = 0; round < WARM_UP_ROUNDS + n; round += 1) {
      const name = `bench-${run}-${round}`;
      const ours = (): Promise<Sample> => product.create(name);
      creates.push(await inTurns(round, pauses, ours, () => baseline.create(name, closed)));
      if (round === 0) await expectSame(installation, name, creates[0]);
    }
  } catch (error) {
    await deleteInTurns(product, pauses).catch(() => undefined);
    throw error;
  } finally {
    await baseline.close();
  }
  return {
    creates: creates.slice(WARM_UP_ROUNDS).map((pair) => ({ ...pair, baseline: pair.baseline[1] })),
    deleteInTurns,
  };
}

async function expectSame(
  { engine }: Installation,
  name: string,
  made: Pair<[BaselineEnvironment, Steps]> | undefined,
): Promise<void> {
  if (made === undefined) throw new TypeError('nothing was made to compare');
  await expectSameResult(engine, environmentNames(name, made.ours.environmentId), made.baseline[0].names);
}

/** Each goes first every second time. */
async function inTurns<T>(
  round: number,
  pauses: Pauses,
  ours: () => Promise<Sample>,
  baseline: () => Promise<T>,
): Promise<Pair<T>> {
  const measureOurs = async (): Promise<Sample> => {
    const sample = await ours();
    await pauses.take();
    return sample;
  };
  const measureBaseline = async (): Promise<[T, number]> => {
    const startedAt = performance.now();
    const made = await baseline();
    const tookMs = performance.now() - startedAt;
    await pauses.take();
    return [made, tookMs];
  };
  const oursFirst = round % 2 === 0;
  const early = oursFirst ? await measureOurs() : undefined;
  const [made, baselineMs] = await measureBaseline();
  const sample = early ?? (await measureOurs());
  return { ours: sample, baseline: made, baselineMs };
}
