/** How much of the framework's speed is left for a read with authentication and a look into the catalog. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Installation } from './installation.ts';
import type { Target } from './load.ts';
import { requestsPerSecond } from './load.ts';
import type { Measure } from './report.ts';
import { beside } from './report.ts';

const CONNECTIONS = 16;
const WARM_UP_MS = 2_000;
const WINDOW_MS = 500;

export async function measureGatewayReads(
  installation: Installation,
  environmentId: string,
  windows: number,
): Promise<Measure> {
  const gateway: Target = {
    port: Number(new URL(installation.settings.url).port),
    path: `/v1/environments/${environmentId}`,
    headers: { authorization: `Bearer ${installation.apiKey}` },
  };
  const empty = await startEmptyApp();
  try {
    const target: Target = { port: empty.port, path: '/empty', headers: {} };
    const reads: number[] = [];
    const empties: number[] = [];
    await requestsPerSecond(gateway, CONNECTIONS, WARM_UP_MS);
    await requestsPerSecond(target, CONNECTIONS, WARM_UP_MS);
    for (let window = 0; window < windows; window += 1) {
      reads.push(await requestsPerSecond(gateway, CONNECTIONS, WINDOW_MS));
      empties.push(await requestsPerSecond(target, CONNECTIONS, WINDOW_MS));
    }
    return beside(
      {
        name: 'gateway: GET /v1/environments/{id}',
        unit: 'requests/s',
        goal: { of: 'ratio', atLeast: 0.5 },
        note: `${CONNECTIONS} connections, windows of ${WINDOW_MS} ms in turns`,
      },
      reads,
      'an empty route of the same framework',
      empties,
    );
  } finally {
    await empty.stop();
  }
}

async function startEmptyApp(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./empty-app.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'close').then(() => Promise.reject(new Error('the empty application did not start'))),
  ])) as [Buffer];
  return {
    port: Number(line.toString()),
    stop: async () => {
      const closed = once(child, 'close');
      child.stdin.end();
      await closed;
    },
  };
}
