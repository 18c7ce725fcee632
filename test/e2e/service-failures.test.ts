/**
 * Known failures of services, as who asked for them sees them: the operation fails with the reason and what the service said
 * last, everything that was made is gone, and the name is free again.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { OperationView } from '#testing';
import { InstallationUnderTest, waitUntil } from '#testing';

const run = promisify(execFile);
const installation = new InstallationUnderTest();
const env = { ...process.env, DOCKER_HOST: installation.setting('DOCKER_HOST') };
const image = installation.setting('SUREFOOT_ENGINE_IMAGE');
const tag = Date.now().toString(36);
const SECRET = 'never to be told 4711';

/** Everything in the daemon and on the engine that could be left behind. */
async function world(): Promise<readonly string[]> {
  const list = async (...args: readonly string[]): Promise<readonly string[]> =>
    (await run('docker', args, { env })).stdout.split('\n').filter((line) => line !== '');
  const administrator = await installation.administrator();
  const { rows } = await administrator.query<{ name: string }>(
    'select datname as name from pg_database union all select rolname from pg_roles',
  );
  await administrator.end();
  const all = await Promise.all([
    list('ps', '-a', '-q', '--no-trunc'),
    list('network', 'ls', '-q', '--no-trunc'),
    list('volume', 'ls', '-q'),
  ]);
  return [...all.flat(), ...rows.map(({ name }) => name)].sort();
}

const bash = (script: string, more: object = {}): object => ({ image, command: ['bash', '-c', script], ...more });

interface Failure {
  readonly service: object;
  readonly code: string;
  readonly message: RegExp;
  /** The last effect that was tried. */
  readonly effect: string;
}

const FAILURES: Readonly<Record<string, Failure>> = {
  'an image that is nowhere': {
    service: { image: 'localhost:1/nobody/nothing:none' },
    code: 'image_unavailable',
    message: /localhost:1\/nobody\/nothing:none/,
    effect: 'image',
  },
  'one that ends at once': {
    service: bash('echo I give up; echo "my secret is $(cat /run/surefoot/TOKEN)"; exit 3'),
    code: 'service_exits',
    message: /exit code 3.*I give up.*my secret is …/,
    effect: 'healthy',
  },
  'one that is never well': {
    service: bash('echo starting; exec sleep 600', { health: { tcp: { port: 9 }, deadlineSeconds: 2 } }),
    code: 'service_unhealthy',
    message: /not well after 2 s.*starting/,
    effect: 'healthy',
  },
  'one that takes more memory than it may': {
    service: bash('a=x; while :; do a=$a$a; done', { limits: { memory: '16m' } }),
    code: 'out_of_memory',
    message: /16 MiB/,
    effect: 'healthy',
  },
  'a command that the image does not have': {
    service: { image, command: ['/no/such/program'] },
    // The image's own entrypoint runs the command, and says that it is not there.
    code: 'service_exits',
    message: /\/no\/such\/program/,
    effect: 'healthy',
  },
};

let before: readonly string[];
beforeAll(async () => {
  before = await world();
});
afterAll(async () => {
  expect(await world()).toEqual(before);
});

function effectsOf({ effects }: OperationView, outcome: string): readonly string[] {
  return effects.filter((effect) => effect.outcome === outcome).map(({ kind }) => kind);
}

test.each(Object.entries(FAILURES))(
  '%s: the operation fails with the reason, everything is undone, and the name is free',
  async (_what, { service, code, message, effect }) => {
    const name = `fails-${code.replaceAll('_', '-')}-${tag}`;
    const good = { name: 'good', ...bash('exec sleep 600') };
    const bad = { name: 'bad', secrets: { TOKEN: SECRET }, ...service };
    const operation = await installation.ended((await installation.create(name, { services: [good, bad] })).id);
    expect(operation).toMatchObject({ state: 'failed', reason: { code, message: expect.stringMatching(message) } });
    expect(effectsOf(operation, 'refused')).toEqual([effect]);
    expect(JSON.stringify(operation)).not.toContain(SECRET);
    // What was made is undone, but for images, which are nobody's.
    expect(
      effectsOf(operation, 'applied').filter((kind) => !/^(image|remove-|leave-|retire-|drop-)/.test(kind)),
    ).toEqual([]);
    expect(await world()).toEqual(before);
    expect(await installation.environment(operation.environmentId ?? '')).toMatchObject({ state: 'failed' });

    const again = await installation.ended((await installation.create(name, { services: [good] })).id);
    expect(again).toMatchObject({ state: 'succeeded' });
    const removed = await installation.ended((await installation.remove(again.environmentId ?? '')).id);
    expect(removed).toMatchObject({ state: 'succeeded' });
    expect(await world()).toEqual(before);
  },
  60_000,
);

test.each(['cancel', 'delete'] as const)(
  'a %s while a service is waited for ends the waiting at once, and nothing is left',
  async (how) => {
    const waiting = { name: 'slow', ...bash('exec sleep 600', { health: { tcp: { port: 9 }, deadlineSeconds: 300 } }) };
    const create = await installation.create(`waits-${how}-${tag}`, { services: [waiting] });
    await waitUntil(
      'it waits for the service',
      async () => (await installation.operation(create.id)).stage === 'healthy',
    );
    const from = performance.now();
    const removed =
      how === 'delete'
        ? await installation.remove(create.environmentId ?? '')
        : await installation.request('POST', `/v1/operations/${create.id}/cancel`);
    expect(await installation.ended(create.id)).toMatchObject({ state: 'cancelled' });
    if (how === 'delete')
      expect(await installation.ended((removed as OperationView).id)).toMatchObject({ state: 'succeeded' });
    // Its deadline was five minutes away.
    expect(performance.now() - from).toBeLessThan(30_000);
    expect(await world()).toEqual(before);
  },
  60_000,
);
