/** Images for services, out of a real registry that asks for credentials. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ActResult, EffectSecrets } from '#effects';
import { facts } from './effects-world.ts';
import type { EngineWorld } from './engine-world.ts';
import { docker, engineWorld, removeWorlds } from './engine-world.ts';
import { CREDENTIALS, RegistryWorld } from './registry-world.ts';

const LONG = 180_000;
const NOBODY: EffectSecrets = {};

let world: EngineWorld;
let registry: RegistryWorld;
beforeAll(async () => {
  world = await engineWorld();
  registry = await RegistryWorld.start();
}, LONG);
afterAll(async () => {
  await registry.stop();
  await removeWorlds();
}, LONG);

interface Pulled {
  readonly result: ActResult;
  /** What people were told meanwhile, with milliseconds since the start. */
  readonly told: readonly { readonly text: string; readonly atMs: number }[];
}

async function pull(
  image: string,
  { secrets = { registry: CREDENTIALS }, serviceId }: { secrets?: EffectSecrets; serviceId?: string } = {},
): Promise<Pulled> {
  const told: { text: string; atMs: number }[] = [];
  const begun = performance.now();
  const spec = { image, ...(serviceId === undefined ? {} : { serviceId }) };
  const progress = (text: string): void => void told.push({ text, atMs: performance.now() - begun });
  const result = await world.perform('image', spec, { secrets, progress, deadlineMs: 150_000 });
  return { result, told };
}

function expectUnavailable({ result }: Pulled, why: RegExp): void {
  expect(result).toEqual({
    outcome: 'refused',
    reason: { code: 'image_unavailable', message: expect.stringMatching(why) },
  });
  expect(JSON.stringify(result)).not.toContain(CREDENTIALS.password);
}

const isThere = (reference: string): Promise<boolean> =>
  docker
    .getImage(reference)
    .inspect()
    .then(
      () => true,
      () => false,
    );

describe('an image that is not on the host', () => {
  test(
    'is pulled with what its registry asks for, and how far it is is told once per second at most',
    async () => {
      const image = `${registry.address}/team/app:1`;
      const digest = await registry.push(image, 30);
      const serviceId = randomUUID();
      registry.bytesPerSecond = 12_000_000;
      const { result, told } = await pull(image, { serviceId });
      registry.bytesPerSecond = undefined;
      const { Id } = await docker.getImage(image).inspect();
      expect(facts(result)).toEqual({ imageId: Id, digest, serviceId });
      const megabytes = told.map(({ text }) => {
        expect(text).toMatch(new RegExp(`^pulling ${image}: \\d+ of 32 MB$`));
        return Number(/(\d+) of/.exec(text)?.[1]);
      });
      expect(megabytes.length).toBeGreaterThanOrEqual(2);
      expect(megabytes).toEqual([...megabytes].sort((a, b) => a - b));
      told.slice(1).forEach(({ atMs }, index) => {
        expect(atMs - told[index]!.atMs).toBeGreaterThanOrEqual(999);
      });
    },
    LONG,
  );

  test('is taken as it is once it is there, and its registry is not asked', async () => {
    const image = `${registry.address}/team/there:1`;
    const digest = await registry.push(image, 1);
    const first = await pull(image);
    const asked = registry.requests;
    // Nor does anybody need to be known there.
    const again = await pull(image, { secrets: NOBODY });
    expect(again).toEqual({ result: first.result, told: [] });
    expect(registry.requests).toBe(asked);
    expect(facts(again.result)).toEqual({ imageId: expect.stringMatching(/^sha256:/), digest });
  });

  test('that is named by its digest is that one, also when a tag is named beside it', async () => {
    const image = `${registry.address}/team/pinned`;
    const first = await registry.push(`${image}:1`, 1);
    const second = await registry.push(`${image}:1`, 1);
    expect(first).not.toBe(second);
    for (const digest of [first, second]) {
      const { result } = await pull(digest);
      expect(facts(result)['digest']).toBe(digest);
      await registry.forget(digest);
    }
    const [, hash] = first.split('@');
    const { result } = await pull(`${image}:1@${hash}`);
    expect(facts(result)['digest']).toBe(first);
    await registry.forget(first);
    expectUnavailable(await pull(`${image}@sha256:${'0'.repeat(64)}`), /manifest unknown/);
  });

  test('and that is named by an id is not looked for anywhere', async () => {
    const asked = registry.requests;
    expectUnavailable(await pull(`sha256:${'0'.repeat(64)}`, { secrets: NOBODY }), /an id cannot be pulled/);
    expect(registry.requests).toBe(asked);
  });
});

describe('B059: an image that cannot be had is refused, with what the daemon says, and is not there', () => {
  test('a tag and a repository that do not exist', async () => {
    const image = `${registry.address}/team/tagged`;
    await registry.push(`${image}:1`, 1);
    expectUnavailable(await pull(`${image}:2`), /manifest unknown|not found/);
    // Without a tag it is `latest`, and not every one there is.
    expectUnavailable(await pull(image), /manifest unknown|not found/);
    expectUnavailable(await pull(`${registry.address}/team/nothing:1`), /manifest unknown|not found/);
    expect(await isThere(`${image}:1`)).toBe(false);
  });

  test('a wrong password, and none', async () => {
    const image = `${registry.address}/team/private:1`;
    await registry.push(image, 1);
    const password = 'not-this-one';
    const wrong = await pull(image, { secrets: { registry: { ...CREDENTIALS, password } } });
    expectUnavailable(wrong, /unauthorized|no basic auth credentials/);
    expect(JSON.stringify(wrong)).not.toContain(password);
    expectUnavailable(await pull(image, { secrets: NOBODY }), /unauthorized|no basic auth credentials/);
    expect(await isThere(image)).toBe(false);
  });

  test('a registry that is not there', async () => {
    expectUnavailable(await pull('localhost:1/team/app:1'), /connection refused/);
  });

  test('a registry that says the password in its refusal: it is not passed on', async () => {
    const talkative = createServer((asked, answer) => {
      const said = Buffer.from(asked.headers.authorization?.slice('Basic '.length) ?? '', 'base64').toString();
      answer.writeHead(said === '' ? 401 : 403, {
        'content-type': 'application/json',
        'www-authenticate': 'Basic realm="test"',
      });
      answer.end(JSON.stringify({ errors: [{ code: 'DENIED', message: `no access for ${said}` }] }));
    });
    await new Promise<void>((resolve) => talkative.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = talkative.address() as AddressInfo;
      expectUnavailable(await pull(`localhost:${port}/team/app:1`), /no access for puller:…/);
    } finally {
      talkative.closeAllConnections();
      await new Promise((resolve) => talkative.close(resolve));
    }
  });

  // Last: the registry is not reached any more. The daemon itself tries five times, for a minute.
  test(
    'a registry that is cut in mid-pull',
    async () => {
      const image = `${registry.address}/team/cut:1`;
      await registry.push(image, 20);
      registry.bytesPerSecond = 20_000_000;
      registry.cutAfterBytes = 10_000_000 + registry.layerBytes;
      const cut = await pull(image);
      expectUnavailable(cut, /EOF|connection reset|connection refused/);
      expect(cut.told.length).toBeGreaterThan(0);
      expect(await isThere(image)).toBe(false);
    },
    LONG,
  );
});
