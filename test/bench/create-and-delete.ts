/** Create and delete, Surefoot and baseline in turns: what makes one of them slow for a while makes the other slow too. */
import { randomBytes } from 'node:crypto';
import type { Steps } from './baseline.ts';
import { Baseline } from './baseline.ts';
import type { Installation } from './installation.ts';
import type { Pauses } from './pauses.ts';
import type { Product, Sample } from './product.ts';
import { expectSameResult } from './same-result.ts';
import { environmentNames } from '#kernel';

interface Pair {
  readonly ours: Sample;
  readonly oursMs: number;
  readonly baseline: Steps;
  readonly baselineMs: number;
}

export interface CreatesAndDeletes {
  readonly creates: readonly Pair[];
  readonly deletes: readonly Pair[];
}

/** Code is compiled, plans and pages are cached: not counted. */
const WARM_UP_ROUNDS = 5;

/** The probe's list while one neighbour is ready; the same for both sides. */
const NEVER_REACHED = ['postgres', 'template1', 'surefoot_control'];

export async function measureCreatesAndDeletes(
  installation: Installation,
  product: Product,
  pauses: Pauses,
  n: number,
): Promise<CreatesAndDeletes> {
  const baseline = await Baseline.open(installation.engine);
  const run = randomBytes(4).toString('hex');
  const neighbour = await product.create(`bench-${run}-neighbour`);
  try {
    const closed = [...NEVER_REACHED, environmentNames(`bench-${run}-neighbour`, neighbour.environmentId).database];
    const creates: Pair[] = [];
    const deletes: Pair[] = [];
    for (let round = -WARM_UP_ROUNDS; round < n; round += 1) {
      const name = `bench-${run}-${round + WARM_UP_ROUNDS}`;
      const created = await inTurns(
        round,
        pauses,
        () => product.create(name),
        () => baseline.create(name, closed),
      );
      const [plain, createSteps] = created.baseline;
      if (round === -WARM_UP_ROUNDS)
        await expectSameResult(installation.engine, environmentNames(name, created.ours.environmentId), plain.names);
      const deleted = await inTurns(
        round,
        pauses,
        () => product.delete(created.ours.environmentId),
        () => baseline.delete(plain),
      );
      if (round < 0) continue;
      creates.push({ ...created, baseline: createSteps });
      deletes.push(deleted);
    }
    return { creates, deletes };
  } finally {
    await baseline.close();
    await product.delete(neighbour.environmentId);
  }
}

/** Each goes first every second time. */
async function inTurns<T>(
  round: number,
  pauses: Pauses,
  ours: () => Promise<Sample>,
  baseline: () => Promise<T>,
): Promise<{ ours: Sample; oursMs: number; baseline: T; baselineMs: number }> {
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
  return { ours: sample, oursMs: sample.endedAt - sample.sentAt, baseline: made, baselineMs };
}
