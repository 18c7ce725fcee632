/**
 * Where the time of an operation goes: its phases tile it from request to end, each beside the baseline's step that does
 * the same work. Marks are the catalog's transaction starts and the moments a receipt and a witness appear.
 */
import type { CreatesAndDeletes } from './create-and-delete.ts';
import type { Sample } from './product.ts';
import type { Phase } from './report.ts';
import { summarise } from './statistics.ts';

type Pairs = CreatesAndDeletes['creates'];

export function phasesOf(pairs: Pairs): readonly Phase[] {
  const ours = new Map<string, number[]>();
  const baseline = new Map<string, number[]>();
  for (const pair of pairs) {
    for (const [phase, tookMs] of tile(pair.ours)) add(ours, phase, tookMs);
    for (const [step, tookMs] of pair.baseline) add(baseline, step === 'verifiers' ? ACCEPT : acting(step), tookMs);
  }
  return [...ours].map(([phase, samples]) => {
    const beside = baseline.get(phase);
    return {
      phase,
      ours: summarise(samples),
      ...(beside === undefined ? {} : { baseline: summarise(beside) }),
    };
  });
}

/** The phases of operations beside those of others of their kind. */
export function phasesBeside(samples: readonly Sample[], others: readonly Sample[]): readonly Phase[] {
  const collect = (operations: readonly Sample[]): ReadonlyMap<string, readonly number[]> => {
    const found = new Map<string, number[]>();
    for (const sample of operations) for (const [phase, tookMs] of tile(sample)) add(found, phase, tookMs);
    return found;
  };
  const baseline = collect(others);
  return [...collect(samples)].map(([phase, tookMs]) => {
    const beside = baseline.get(phase);
    return {
      phase,
      ours: summarise(tookMs),
      ...(beside === undefined ? {} : { baseline: summarise(beside) }),
    };
  });
}

/** Passwords and verifiers are made here too. */
const ACCEPT = 'request to its transaction';

const acting = (kind: string): string => `  ${kind}: receipt to witness`;

function tile({ sentAt, createdAt, startedAt, endedAt, effects }: Sample): readonly (readonly [string, number])[] {
  const tiles: (readonly [string, number])[] = [
    [ACCEPT, createdAt - sentAt],
    ['accepted, relayed, delivered, looked at', startedAt - createdAt],
  ];
  let last = startedAt;
  let boundary = 'claim, then record';
  for (const { kind, receiptAt, witnessAt, settledAt } of effects) {
    // A mark that the kernel did not tell in time is left out, with its phase: the others stay right.
    if (receiptAt !== undefined) tiles.push([`${boundary} ${kind}`, receiptAt - last]);
    if (receiptAt !== undefined && witnessAt !== undefined) tiles.push([acting(kind), witnessAt - receiptAt]);
    last = witnessAt ?? settledAt;
    boundary = 'answer, settle, then record';
  }
  tiles.push(['answer, settle and finish', endedAt - last]);
  return tiles;
}

function add(samples: Map<string, number[]>, name: string, tookMs: number): void {
  samples.set(name, [...(samples.get(name) ?? []), tookMs]);
}
