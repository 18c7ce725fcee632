import type { Measure, Phase, Report, Unmeasured } from './report.ts';

/** What one run of the bench finds. */
export class Run {
  readonly measures: (Measure | Unmeasured)[] = [];
  readonly phases: Record<string, readonly Phase[]> = {};
  readonly failures: string[] = [];
  pauses: Report['pauses'] = { busy: 0, syncMs: { n: 0, median: 0, q1: 0, q3: 0 } };

  /** One part of the bench: when it fails, what the others have found is still told. */
  async part<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    console.log(`  ${name}`);
    try {
      return await work();
    } catch (error) {
      this.failures.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      return undefined;
    }
  }
}
