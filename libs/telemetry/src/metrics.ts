/** What a process counts, in the text format of Prometheus. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds: from a read that is answered at once to one that waits for a lock. */
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Labels = Readonly<Record<string, string>>;

/** Names get the prefix `surefoot_`; a name can be registered once. */
interface Metrics {
  /** @returns adds one */
  counter(name: string, help: string, labels: readonly string[]): (values: Labels) => void;
  /** @returns records a duration, in milliseconds; shown in seconds, as Prometheus wants it */
  duration(name: string, help: string, labels: readonly string[]): (values: Labels, milliseconds: number) => void;
  /** @param read asked at every scrape; one value per set of labels */
  gauge(
    name: string,
    help: string,
    labels: readonly string[],
    read: () => Promise<readonly { readonly labels: Labels; readonly value: number }[]>,
  ): void;
  readonly contentType: string;
  render(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const options = (name: string, help: string, labels: readonly string[]) => ({
    name: `surefoot_${name}`,
    help,
    labelNames: [...labels],
    registers: [registry],
  });
  return {
    counter(name, help, labels) {
      const counter = new Counter(options(name, help, labels));
      return (values) => counter.inc(values);
    },
    duration(name, help, labels) {
      const histogram = new Histogram({ ...options(name, help, labels), buckets: DURATION_BUCKETS_SECONDS });
      return (values, milliseconds) => histogram.observe(values, milliseconds / 1000);
    },
    gauge(name, help, labels, read) {
      new Gauge({
        ...options(name, help, labels),
        async collect() {
          const samples = await read();
          this.reset();
          for (const sample of samples) this.set(sample.labels, sample.value);
        },
      });
    },
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
