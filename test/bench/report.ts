/** What the bench has to say: a table for people, JSON for what compares runs. */
import { cpus, loadavg, release, totalmem } from 'node:os';
import type { Summary } from './statistics.ts';
import { summarise } from './statistics.ts';

export interface Goal {
  readonly of: 'median' | 'ratio';
  readonly atMost?: number;
  readonly atLeast?: number;
}

export interface Measure extends Summary {
  readonly name: string;
  readonly unit: 'ms' | 'MB' | 'requests/s' | '×' | 'count';
  readonly baseline?: Summary & { readonly name: string };
  /** Of the medians. */
  readonly ratio?: number;
  /** Of each sample and the baseline's sample beside it: how far the ratio can be trusted. */
  readonly ratioOfPairs?: Summary;
  readonly goal?: Goal;
  readonly met?: boolean;
  readonly note?: string;
}

/** A goal whose subject does not exist: named, so that it cannot be forgotten. */
export interface Unmeasured {
  readonly name: string;
  readonly goal: Goal;
  readonly notBuilt: string;
}

/** One phase of an operation beside what the baseline needs for the same thing; milliseconds. */
export interface Phase {
  readonly phase: string;
  readonly ours: Summary;
  readonly baseline?: Summary;
}

export interface Report {
  readonly machine: ReturnType<typeof machine>;
  readonly command: string;
  readonly date: string;
  readonly measures: readonly (Measure | Unmeasured)[];
  readonly phases: Readonly<Record<string, readonly Phase[]>>;
  /** How quiet the machine was while nothing of ours had anything to do: share of all cores, and a durable write of 8 kB. */
  readonly pauses: { readonly busy: number; readonly syncMs: Summary };
  /** What could not be measured, and why. */
  readonly failures: readonly string[];
}

export function machine(): {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryMb: number;
  readonly node: string;
  readonly kernel: string;
  readonly load: number;
} {
  const all = cpus();
  return {
    cpu: all[0]?.model ?? 'unknown',
    cores: all.length,
    memoryMb: Math.round(totalmem() / 2 ** 20),
    node: process.version,
    kernel: release(),
    load: loadavg()[0] ?? 0,
  };
}

/** A measure without a baseline. */
export function alone(what: Pick<Measure, 'name' | 'unit' | 'goal' | 'note'>, samples: readonly number[]): Measure {
  const summary = summarise(samples);
  return {
    ...what,
    ...summary,
    ...(what.goal === undefined ? {} : { met: isMet(what.goal, summary.median, undefined) }),
  };
}

/** What there is of something, and what there was before. */
export function grown(
  what: Pick<Measure, 'name' | 'unit' | 'goal' | 'note'>,
  sample: number,
  baselineName: string,
  before: number,
): Measure {
  return { ...alone(what, [sample]), baseline: { name: baselineName, ...summarise([before]) } };
}

/** A measure against another: the ratio is of the medians. */
export function against(
  what: Pick<Measure, 'name' | 'unit' | 'goal' | 'note'>,
  samples: readonly number[],
  baselineName: string,
  baselineSamples: readonly number[],
): Measure {
  const summary = summarise(samples);
  const baseline = summarise(baselineSamples);
  const ratio = summary.median / baseline.median;
  return {
    ...what,
    ...summary,
    baseline: { name: baselineName, ...baseline },
    ratio,
    ...(what.goal === undefined ? {} : { met: isMet(what.goal, summary.median, ratio) }),
  };
}

/** The same for samples that were taken in turns, so that the two lists belong together pair by pair. */
export function beside(...[what, samples, baselineName, baselineSamples]: Parameters<typeof against>): Measure {
  const pairs = samples.map((sample, index) => sample / (baselineSamples[index] ?? NaN));
  return { ...against(what, samples, baselineName, baselineSamples), ratioOfPairs: summarise(pairs) };
}

function isMet(goal: Goal, median: number, ratio: number | undefined): boolean {
  const value = goal.of === 'ratio' ? ratio : median;
  if (value === undefined) return false;
  return value <= (goal.atMost ?? Infinity) && value >= (goal.atLeast ?? -Infinity);
}

export function renderMeasures(measures: readonly (Measure | Unmeasured)[]): string {
  const rows = measures.map((measure) =>
    'notBuilt' in measure
      ? [measure.name, '', '', '', '', goalText(measure.goal), `not built yet: ${measure.notBuilt}`]
      : [
          measure.name,
          String(measure.n),
          `${spread(measure, measure.unit)} ${measure.unit === 'count' ? '' : measure.unit}`,
          measure.baseline === undefined ? '' : spread(measure.baseline, measure.unit),
          measure.ratio === undefined ? '' : `${measure.ratio.toFixed(2)} ×`,
          measure.goal === undefined ? '' : goalText(measure.goal),
          measure.met === undefined ? '' : measure.met ? 'met' : 'NOT MET',
        ],
  );
  const notes = measures.flatMap((measure) =>
    'note' in measure && measure.note !== undefined ? [`${measure.name}: ${measure.note}`] : [],
  );
  return [table(['measure', 'n', 'median (quartiles)', 'baseline', 'ratio', 'goal', ''], rows), ...notes].join('\n');
}

export function renderPhases(title: string, phases: readonly Phase[]): string {
  const rows = phases.map(({ phase, ours, baseline }) => [
    phase,
    spread(ours),
    baseline === undefined ? '' : spread(baseline),
    signed(ours.median - (baseline?.median ?? 0)),
  ]);
  return `${title}, ms\n${table(['phase', 'median (quartiles)', 'baseline', 'difference'], rows)}`;
}

function goalText({ of, atMost, atLeast }: Goal): string {
  const unit = of === 'ratio' ? ' ×' : '';
  return atMost === undefined ? `≥ ${atLeast ?? ''}${unit}` : `≤ ${atMost}${unit}`;
}

function spread({ n, median, q1, q3 }: Summary, unit?: Measure['unit']): string {
  if (unit === 'count') return median.toFixed(0);
  return n === 1 ? short(median) : `${short(median)} (${short(q1)}–${short(q3)})`;
}

function short(value: number): string {
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toFixed(1);
}

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(1)}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(head), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}
