import { backlog, type CatalogSource, CatalogUnavailable } from '#catalog';
import { ENVIRONMENT_STATES } from '#protocol';
import { createMetrics } from '#telemetry';

/** What the gateway counts about itself, and what it finds open in the catalog at each scrape. */
export interface GatewayMetrics {
  /** @param route the pattern, never the address: addresses are without end */
  request(method: string, route: string, status: number, milliseconds: number): void;
  readonly contentType: string;
  render(): Promise<string>;
}

export function gatewayMetrics(source: CatalogSource): GatewayMetrics {
  const metrics = createMetrics();
  const requests = metrics.duration('http_request_duration_seconds', 'Requests answered', [
    'method',
    'route',
    'status',
  ]);
  metrics.gauge('operations_open', 'Operations that have not ended', ['state', 'kind'], async () =>
    (await open(source)).operations.map(({ state, kind, count }) => ({ labels: { state, kind }, value: count })),
  );
  metrics.gauge('environments', 'Environments that are neither deleted nor failed', ['state'], async () => {
    const { up, environments } = await open(source);
    const counts = new Map(environments.map(({ state, count }) => [state, count]));
    return (up ? LIVING : []).map((state) => ({ labels: { state }, value: counts.get(state) ?? 0 }));
  });
  metrics.gauge('outbox_unpublished', 'Messages that wait for the broker', [], async () => [
    { labels: {}, value: (await open(source)).outbox },
  ]);
  metrics.gauge('cases_open', 'Cases that wait for a decision', [], async () => [
    { labels: {}, value: (await open(source)).cases },
  ]);
  metrics.gauge('catalog_up', '1 while the catalog answers', [], async () => [
    { labels: {}, value: (await open(source)).up ? 1 : 0 },
  ]);
  return {
    request: (method, route, status, milliseconds) => requests({ method, route, status: String(status) }, milliseconds),
    contentType: metrics.contentType,
    render: () => metrics.render(),
  };
}

type Open = Awaited<ReturnType<typeof backlog>> & { readonly up: boolean };

const NOTHING: Open = { operations: [], outbox: 0, cases: 0, environments: [], up: false };
/** Each is told also when there is none: an alert can compare. */
const LIVING = ENVIRONMENT_STATES.filter((state) => state !== 'deleted' && state !== 'failed');
const looks = new WeakMap<CatalogSource, Promise<Open>>();

/** The gauges of one scrape are read together: one look at the catalog, shared while it is under way. */
function open(source: CatalogSource): Promise<Open> {
  const under = looks.get(source);
  if (under !== undefined) return under;
  const look = read(source).finally(() => setImmediate(() => looks.delete(source)));
  looks.set(source, look);
  return look;
}

async function read(source: CatalogSource): Promise<Open> {
  try {
    return { ...(await backlog(source.catalog)), up: true };
  } catch (error) {
    if (error instanceof CatalogUnavailable) return NOTHING;
    throw error;
  }
}
