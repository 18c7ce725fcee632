/** Medians and quartiles: what a few dozen samples on a shared machine can say, and an average cannot. */

export interface Summary {
  readonly n: number;
  readonly median: number;
  readonly q1: number;
  readonly q3: number;
}

/** @param samples at least one */
export function summarise(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((one, other) => one - other);
  return { n: sorted.length, median: quantile(sorted, 0.5), q1: quantile(sorted, 0.25), q3: quantile(sorted, 0.75) };
}

/** Linear between the two nearest samples (R-7 in Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996). */
function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  const above = sorted[Math.ceil(at)];
  if (below === undefined || above === undefined) throw new RangeError('there is no quantile of no samples');
  return below + (above - below) * (at - Math.floor(at));
}
