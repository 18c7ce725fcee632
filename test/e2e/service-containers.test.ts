/** Containers of services on a real daemon: made, given their files, started, found to be well or not, and removed. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { markLabels } from '#kernel';
import type { CallFate } from '#testing';
import { DockerProxy, waitUntil } from '#testing';
import { facts } from './effects-world.ts';
import { docker } from './engine-world.ts';
import type { TestService } from './services-world.ts';
import { DATABASE_PASSWORD, FILES, server, ServicesWorld, WELL } from './services-world.ts';

const LONG = 120_000;
const MIB = 1024 * 1024;
/** What a freshly made and removed service leaves. */
const NOTHING = { containers: 0, volumes: 0 };

let world: ServicesWorld;
let nodeImage: string;
let proxy: DockerProxy;
beforeAll(async () => {
  world = await ServicesWorld.make();
  nodeImage = await world.nodeImage('USER postgres');
  proxy = await DockerProxy.inFrontOf(world.dockerHost);
}, LONG);
afterEach(() => {
  proxy.rule(() => 'pass');
  proxy.release();
});
afterAll(async () => {
  await proxy.close();
  await world.remove();
}, LONG);

const refusal = (code: string, message: unknown = expect.any(String)): object => ({
  outcome: 'refused',
  reason: { code, message },
});
const inspect = (service: TestService): ReturnType<ReturnType<typeof docker.getContainer>['inspect']> =>
  docker.getContainer(service.containerId).inspect();

describe('a service', () => {
  let web: TestService;

  test(
    'is made as asked for, with limits, without rights, and nothing secret in what the daemon shows of it',
    async () => {
      web = world.service({
        imageId: nodeImage,
        command: server(3000, WELL),
        env: { COLOUR: 'blue' },
        limits: { memoryBytes: 64 * MIB, cpus: 0.5, pids: 32 },
        readOnly: true,
      });
      expect(facts(await world.container(web))).toEqual({
        serviceId: web.spec.serviceId,
        containerId: expect.stringMatching(/^[0-9a-f]{64}$/),
        imageId: web.spec.imageId,
        ports: {},
      });
      const { State, Config, HostConfig, Mounts, NetworkSettings } = await inspect(web);
      expect(State.Status).toBe('created');
      expect(HostConfig).toMatchObject({
        Memory: 64 * MIB,
        MemorySwap: 64 * MIB,
        NanoCpus: 500_000_000,
        PidsLimit: 32,
        CapDrop: ['ALL'],
        CapAdd: null,
        SecurityOpt: ['no-new-privileges'],
        Privileged: false,
        ReadonlyRootfs: true,
        Init: true,
        Binds: null,
        RestartPolicy: { Name: 'no', MaximumRetryCount: 0 },
        LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      });
      expect(Config.Labels).toMatchObject({
        ...markLabels({
          installation: world.installation,
          kind: 'service',
          id: web.spec.serviceId,
          token: web.token,
        }),
        'surefoot.environment': world.environmentId,
        'surefoot.service': 'web',
      });
      expect(Config.Env).toEqual(expect.arrayContaining(['COLOUR=blue', expect.stringMatching(/^PG_MAJOR=/)]));
      expect(Object.keys(NetworkSettings.Networks)).toHaveLength(1);
      // Its own folder and the one that the image declares; both are found by their labels when it is gone.
      expect(Mounts.map(({ Type, Destination }) => `${Type} ${Destination}`).sort()).toEqual([
        'volume /run/surefoot',
        'volume /var/lib/postgresql/data',
      ]);
      expect(await world.ofToken(web)).toEqual({ containers: 1, volumes: 2 });
    },
    LONG,
  );

  test('gets its files before it ever runs, each its user’s own and for nobody else', async () => {
    expect(await world.act(web, 'secrets')).toEqual({ outcome: 'applied', facts: {} });
    expect((await inspect(web)).State.Status).toBe('created');
    facts(await world.act(web, 'start'));
    const listing = await world.inside(web.containerId, ['stat', '-c', '%n %U:%G %a', '/run/surefoot', ...files()]);
    expect(listing.trim().split('\n').sort()).toEqual([
      '/run/surefoot root:root 755',
      '/run/surefoot/API_KEY postgres:postgres 400',
      '/run/surefoot/ca.pem postgres:postgres 444',
      '/run/surefoot/database_url postgres:postgres 400',
    ]);
    for (const [name, content] of Object.entries(FILES))
      expect(await world.inside(web.containerId, ['cat', `/run/surefoot/${name}`], 'postgres')).toBe(content);
    await expect(world.inside(web.containerId, ['cat', '/run/surefoot/API_KEY'], 'nobody')).rejects.toThrow(
      'Permission denied',
    );
    await expect(world.inside(web.containerId, ['rm', '/run/surefoot/API_KEY'], 'postgres')).rejects.toThrow(
      'Permission denied',
    );
    const shown = JSON.stringify([await inspect(web), await docker.getImage(web.spec.imageId).history()]);
    for (const secret of [FILES.API_KEY, FILES.database_url, DATABASE_PASSWORD, encodeURIComponent(DATABASE_PASSWORD)])
      expect(shown).not.toContain(secret);
  });

  test('is well when it answers, as its neighbours in the network would reach it', async () => {
    expect(await world.healthy(web, { http: { port: 3000, path: '/' } })).toEqual({ outcome: 'applied', facts: {} });
    expect(await world.healthy(web, { tcp: { port: 3000 } })).toEqual({ outcome: 'applied', facts: {} });
    const engine = world.effects.engine.identities.containerId!;
    expect(await world.inside(engine, ['getent', 'hosts', 'web'])).toMatch(/^10\.213\.\d+\.\d+ +web/);
  });

  test('runs without rights on a root that it cannot write to, with a first process that takes in orphans', async () => {
    const inside = await world.inside(web.containerId, [
      'bash',
      '-c',
      'grep -E "CapEff|NoNewPrivs" /proc/1/status; cat /proc/1/comm; touch /x || true; touch /tmp/x && echo tmp; hostname',
    ]);
    expect(inside).toMatch(/CapEff:\s+0+\n/);
    expect(inside).toMatch(/NoNewPrivs:\s+1\n/);
    expect(inside).toContain('docker-init');
    expect(inside).toContain('Read-only file system');
    expect(inside).toContain('tmp\n');
    expect(inside).toContain('web\n');
  });

  test('is started again by the daemon from when it is published, and not before', async () => {
    expect((await inspect(web)).HostConfig.RestartPolicy?.Name).toBe('no');
    for (let time = 0; time < 2; time += 1)
      expect(await world.act(web, 'publish-service')).toEqual({ outcome: 'applied', facts: {} });
    expect((await inspect(web)).HostConfig.RestartPolicy?.Name).toBe('unless-stopped');
    const { StartedAt } = (await inspect(web)).State;
    await world.inside(web.containerId, ['bash', '-c', 'kill -KILL -1'], 'postgres').catch(() => undefined);
    await waitUntil('it runs again', async () => {
      const { State } = await inspect(web);
      return State.Running && State.StartedAt !== StartedAt;
    });
  });

  test('B056: is removed with all that is its own, and its name is free at once', async () => {
    const { serviceId } = web.spec;
    expect(facts(await world.act(web, 'remove-service'))).toEqual({ serviceId });
    expect(await world.ofToken(web)).toEqual(NOTHING);
    const name = `surefoot-service-${web.token}`;
    await (await docker.createContainer({ name, Image: world.imageId })).remove({ v: true });
    expect(facts(await world.act(web, 'remove-service'))).toEqual({ serviceId, alreadyAbsent: true });
  });
});

function files(): readonly string[] {
  return Object.keys(FILES).map((name) => `/run/surefoot/${name}`);
}

test(
  'B056: a service that somebody else is removing at the same time is absent when its removal is told as done',
  async () => {
    for (let round = 0; round < 5; round += 1) {
      const service = await world.up(
        world.service({ command: ['bash', '-c', 'trap "" TERM; for (( ; ; )); do sleep 1; done'] }),
      );
      const other = docker.getContainer(service.containerId).remove({ force: true, v: true });
      const [removed] = await Promise.all([world.act(service, 'remove-service'), other.catch(() => undefined)]);
      expect(removed).toMatchObject({ outcome: 'applied' });
      expect(await world.ofToken(service)).toEqual(NOTHING);
    }
  },
  LONG,
);

test(
  'B076: a tag that moves between the pull and the container changes nothing: the container is of the image that was pinned',
  async () => {
    const [first, second] = [await world.imageWith('LABEL which=first'), await world.imageWith('LABEL which=second')];
    const [repo, tag] = [`surefoot-test-${randomUUID()}`, '1'];
    const image = `${repo}:${tag}`;
    const serviceId = randomUUID();
    await docker.getImage(first).tag({ repo, tag });
    const pinned = facts(await world.effects.engine.perform('image', { image, serviceId }));
    expect(pinned).toMatchObject({ imageId: first, serviceId });
    await docker.getImage(second).tag({ repo, tag });
    expect((await docker.getImage(image).inspect()).Id).toBe(second);
    const service = world.service({ serviceId, imageId: pinned['imageId'] as string });
    expect(facts(await world.container(service))).toMatchObject({ imageId: first });
    facts(await world.act(service, 'secrets'));
    facts(await world.act(service, 'start'));
    const { Image, Config } = await inspect(service);
    expect({ Image, which: Config.Labels['which'] }).toEqual({ Image: first, which: 'first' });
    facts(await world.act(service, 'remove-service'));
    // And where it is no longer there, what the tag names by now is not taken instead.
    await docker.getImage(first).remove({ force: true });
    const again = world.service({ imageId: first });
    expect(await world.container(again)).toMatchObject(refusal('image_unavailable', expect.stringContaining(first)));
    expect(await world.ofToken(again)).toEqual(NOTHING);
  },
  LONG,
);

describe('B057: the same try again', () => {
  test(
    'finds what it made, step by step, and makes nothing more',
    async () => {
      const service = world.service({
        imageId: nodeImage,
        command: server(3000, WELL),
        ...world.published([3000], { from: 24_100, to: 24_199 }),
      });
      const twice = async <T>(act: () => Promise<T>): Promise<T> => {
        const first = await act();
        expect(await act()).toEqual(first);
        return first;
      };
      facts(await twice(() => world.container(service)));
      facts(await twice(() => world.act(service, 'secrets')));
      facts(await twice(() => world.act(service, 'start')));
      facts(await twice(() => world.healthy(service, { tcp: { port: 3000 } })));
      facts(await twice(() => world.act(service, 'publish-service')));
      // The create again, long after: what has come further is left alone, whatever it is like by now.
      expect(await world.container(service)).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'container_differs', message: expect.stringMatching(/RestartPolicy.*it is running$/) },
      });
      expect(await world.ofToken(service)).toEqual({ containers: 1, volumes: 2 });
      // What runs may have changed its files, and has read them.
      expect(await world.act(service, 'secrets')).toMatchObject(refusal('service_started'));
      expect(facts(await world.act(service, 'remove-service'))).toEqual({ serviceId: service.spec.serviceId });
    },
    LONG,
  );

  test(
    'after a create whose answer never came finds the one container that there is',
    async () => {
      const service = world.service();
      proxy.once(/^POST \/containers\/create/, 'hold');
      const slow = { dockerHost: proxy.dockerHost, deadlineMs: 2_000 };
      expect(await world.container(service, slow)).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'daemon_lost' },
      });
      // The daemon goes on when it can, long after its client gave up.
      expect(await world.ofToken(service)).toEqual(NOTHING);
      proxy.release();
      await waitUntil('it is made', async () => (await world.ofToken(service)).containers === 1);
      facts(await world.container(service));
      facts(await world.container(service));
      expect(await world.ofToken(service)).toEqual({ containers: 1, volumes: 2 });
      facts(await world.act(service, 'remove-service'));
    },
    LONG,
  );

  test.each(['secrets', 'start', 'publish-service', 'remove-service'] as const)(
    'after a lost answer: %s is unknown, and not asked for twice',
    async (kind) => {
      const service = world.service();
      facts(await world.container(service));
      if (kind === 'publish-service') facts(await world.act(service, 'start'));
      proxy.once(/^(PUT .*\/archive|POST .*\/start|POST .*\/update|DELETE \/containers)/, 'lose-reply');
      const before = proxy.calls.length;
      expect(await world.act(service, kind, { dockerHost: proxy.dockerHost })).toMatchObject({ outcome: 'unknown' });
      expect(proxy.calls.slice(before).filter((call) => !call.startsWith('GET'))).toHaveLength(1);
      // It was done all the same, so it is found to be so.
      facts(await world.act(service, kind));
      if (kind !== 'remove-service') facts(await world.act(service, 'remove-service'));
      expect(await world.ofToken(service)).toEqual(NOTHING);
    },
    LONG,
  );
});

describe('whose the files are', () => {
  test.each([
    ['root, by default', [], '0:0'],
    ['a user by name', ['USER postgres'], '999:999'],
    ['a user by number, with the group that goes with it', ['USER 65534'], '65534:65534'],
    ['a number that nobody has', ['USER 4711'], '4711:0'],
    ['a number larger than a tar header holds', ['USER 1000650000'], '1000650000:0'],
    ['a name and a group by name', ['USER postgres:nogroup'], '999:65534'],
    ['a name and a group by number', ['USER postgres:4712'], '999:4712'],
    ['two numbers', ['USER 4711:4712'], '4711:4712'],
  ])(
    '%s',
    async (_user, changes, owner) => {
      const service = world.service({ imageId: await world.imageWith(...changes) });
      await world.up(service);
      const listing = await world.inside(service.containerId, ['stat', '-c', '%u:%g %a', '/run/surefoot/API_KEY']);
      expect(listing).toBe(`${owner} 400\n`);
      // Its first process is that user.
      const status = await world.inside(service.containerId, ['grep', '-E', '^(Uid|Gid)', '/proc/1/status']);
      expect([...status.matchAll(/^.id:\t(\d+)/gm)].map(([, id]) => id).join(':')).toBe(owner);
      expect(await world.inside(service.containerId, ['cat', '/run/surefoot/API_KEY'], owner)).toBe(FILES.API_KEY);
      facts(await world.act(service, 'remove-service'));
    },
    LONG,
  );

  test(
    'a number, in an image that holds nothing else, is taken as it is; a name there is refused',
    async () => {
      const entrypoint = 'ENTRYPOINT ["/nothing"]';
      const service = world.service({ imageId: await world.emptyImage('USER 1234', entrypoint), command: [] });
      facts(await world.container(service));
      expect(await world.act(service, 'secrets')).toEqual({ outcome: 'applied', facts: {} });
      facts(await world.act(service, 'remove-service'));
      const ghost = world.service({ imageId: await world.emptyImage('USER ghost', entrypoint), command: [] });
      facts(await world.container(ghost));
      expect(await world.act(ghost, 'secrets')).toMatchObject(
        refusal('user_unknown', expect.stringContaining('"ghost"')),
      );
      facts(await world.act(ghost, 'remove-service'));
    },
    LONG,
  );

  test(
    'a container that was changed meanwhile, or was started by hand, gets none',
    async () => {
      const service = world.service();
      facts(await world.container(service));
      await docker.getContainer(service.containerId).start();
      expect(await world.act(service, 'secrets')).toMatchObject(refusal('service_started'));
      expect(await world.inside(service.containerId, ['ls', '/run/surefoot'])).toBe('');
      facts(await world.act(service, 'remove-service'));
    },
    LONG,
  );
});

describe('a service that does not get well', () => {
  const gone = async (service: TestService): Promise<void> => {
    facts(await world.act(service, 'remove-service'));
    expect(await world.ofToken(service)).toEqual(NOTHING);
  };

  test(
    'because it ends at once is told with its exit code and its last words, which hold no secret',
    async () => {
      const script = `echo begin; seq 1 100; cat /run/surefoot/database_url /run/surefoot/API_KEY; echo; echo "red $(printf '\\033[31m')end"; exit 3`;
      const service = await world.up(world.service({ command: ['bash', '-c', script] }));
      const before = performance.now();
      const result = await world.healthy(service, { tcp: { port: 80 }, deadlineSeconds: 60 });
      // Nothing starts it again, so nobody waits.
      expect(performance.now() - before).toBeLessThan(10_000);
      expect(result).toMatchObject(
        refusal(
          'service_exits',
          expect.stringMatching(/^the service ended by itself, with exit code 3; it said last: /),
        ),
      );
      const said = JSON.stringify(result);
      expect(said).toContain('99 | 100 | …');
      expect(said).toContain('red end');
      expect(said).not.toContain('begin');
      for (const secret of [FILES.API_KEY, FILES.database_url, encodeURIComponent(DATABASE_PASSWORD)])
        expect(said).not.toContain(secret);
      // Started it was, and it is not to run a second time.
      const { StartedAt } = (await inspect(service)).State;
      expect(facts(await world.act(service, 'start'))).toEqual({ startedAt: StartedAt });
      expect((await inspect(service)).State).toMatchObject({ Running: false, StartedAt });
      expect(await world.act(service, 'publish-service')).toMatchObject(refusal('service_exits'));
      await gone(service);
    },
    LONG,
  );

  test(
    'because there is no such program is told by what its first process says, or the daemon where there is none',
    async () => {
      const imageId = await world.imageWith('ENTRYPOINT ["/nowhere"]');
      const service = await world.up(world.service({ imageId, command: [] }));
      expect(await world.healthy(service)).toMatchObject(
        refusal('service_exits', expect.stringMatching(/exit code 127.*\/nowhere.*no such file/i)),
      );
      await gone(service);
      // A daemon that has no such first process is not asked for one.
      proxy.rule((call) => (/^GET \/info/.test(call) ? { status: 200, body: { InitCommit: { ID: 'N/A' } } } : 'pass'));
      const bare = world.service({ imageId, command: [] });
      facts(await world.container(bare, { dockerHost: proxy.dockerHost }));
      expect((await inspect(bare)).HostConfig.Init ?? false).toBe(false);
      expect(await world.act(bare, 'start')).toMatchObject(
        refusal('service_not_started', expect.stringMatching(/\/nowhere.*no such file/i)),
      );
      await gone(bare);
    },
    LONG,
  );

  test(
    'because its memory is not enough is told with its limit',
    async () => {
      const command = ['node', '-e', 'const all = []; for (;;) all.push(Buffer.alloc(4 << 20, 1))'];
      const limits = { memoryBytes: 64 * MIB, cpus: 1, pids: 64 };
      const service = await world.up(world.service({ imageId: nodeImage, command, limits }));
      expect(await world.healthy(service)).toMatchObject(
        refusal('out_of_memory', expect.stringContaining('its limit of 64 MiB')),
      );
      await gone(service);
    },
    LONG,
  );

  test.each([
    ['answers with an error', server(3000, 'HTTP/1.1 503 No\r\n\r\n'), 'GET /health?a=b answered 503'],
    ['speaks something else', server(3000, '220 mail ready\r\n'), 'GET /health?a=b answered, but not in HTTP'],
    ['listens elsewhere', server(3001, WELL), 'GET /health?a=b: connection refused'],
    ['hangs up', server(3000, ''), 'GET /health?a=b: the connection ended without an answer'],
    [
      'takes connections and says nothing',
      ['node', '-e', `require('node:net').createServer(() => {}).listen(3000)`],
      'GET /health?a=b: no answer within 3 s',
    ],
    [
      'never ends its first line',
      [
        'node',
        '-e',
        `require('node:net').createServer((s) => s.on('error', () => {}).write('x'.repeat(1e6))).listen(3000)`,
      ],
      'GET /health?a=b answered, but not in HTTP',
    ],
  ])(
    'because it %s is told at its deadline, with what it answered last',
    async (_how, command, why) => {
      const service = await world.up(world.service({ imageId: nodeImage, command }));
      const seen: string[] = [];
      const result = await world.healthy(
        service,
        { http: { port: 3000, path: '/health?a=b' }, deadlineSeconds: 3 },
        { progress: (text) => void seen.push(text) },
      );
      expect(result).toMatchObject(
        refusal('service_unhealthy', expect.stringContaining(`the service was not well after 3 s: ${why};`)),
      );
      expect(seen).toContain(`waits for web: ${why}`);
      await gone(service);
    },
    LONG,
  );

  test(
    'by its image’s own check is waited for, and told at its deadline',
    async () => {
      const check = (word: string): string => `HEALTHCHECK --interval=200ms --retries=1 CMD ${word}`;
      const bad = await world.up(world.service({ imageId: await world.imageWith(check('false')) }));
      expect(await world.healthy(bad, { deadlineSeconds: 2 })).toMatchObject(
        refusal('service_unhealthy', expect.stringContaining('own check says “unhealthy”')),
      );
      await gone(bad);
      const good = await world.up(world.service({ imageId: await world.imageWith(check('true')) }));
      facts(await world.healthy(good));
      await gone(good);
      const none = await world.up(world.service());
      const before = performance.now();
      facts(await world.healthy(none));
      expect(performance.now() - before).toBeGreaterThan(1_900);
      await gone(none);
    },
    LONG,
  );

  test(
    'as long as the daemon is away is waited for',
    async () => {
      const service = await world.up(world.service({ imageId: nodeImage, command: server(3000, WELL) }));
      await proxy.refuse();
      try {
        const seen: string[] = [];
        const waiting = world.healthy(
          service,
          { tcp: { port: 3000 } },
          { dockerHost: proxy.dockerHost, progress: (text) => void seen.push(text) },
        );
        await waitUntil('it waits', () => seen.length > 0);
        await proxy.accept();
        facts(await waiting);
        expect(seen[0]).toContain('cannot be reached');
      } finally {
        if (!proxy.listening) await proxy.accept();
      }
      await gone(service);
    },
    LONG,
  );

  test(
    'from an engine whose image lacks what that takes is told as that, and not as silence of the service',
    async () => {
      const service = await world.up(world.service({ imageId: nodeImage, command: server(3000, WELL) }));
      const engine = await docker.createContainer({
        Image: world.imageId,
        Entrypoint: ['sleep', 'infinity'],
        HostConfig: { NetworkMode: world.networkId, Init: true },
      });
      const tried = async (health: Parameters<typeof world.healthy>[1]): Promise<unknown> =>
        world.healthy(service, { ...health, deadlineSeconds: 1 }, {}, engine.id);
      const unhealthy = (why: string): object => refusal('service_unhealthy', expect.stringContaining(why));
      try {
        await engine.start();
        facts(await world.healthy(service, { tcp: { port: 3000 } }, {}, engine.id));
        await world.inside(engine.id, ['chmod', 'o-x', '/bin/bash']);
        expect(await tried({ tcp: { port: 3000 } })).toMatchObject(
          unhealthy('port 3000 cannot be tried: the engine’s image has a bash that not everybody may run'),
        );
        await world.inside(engine.id, ['rm', '/bin/bash']);
        expect(await tried({ tcp: { port: 3000 } })).toMatchObject(unhealthy('the engine’s image has no bash'));
        await world.inside(engine.id, ['rm', '/usr/bin/timeout']);
        expect(await tried({ http: { port: 3000, path: '/' } })).toMatchObject(
          unhealthy('GET / cannot be tried: the engine’s image has no timeout'),
        );
      } finally {
        await engine.remove({ force: true, v: true });
      }
      await gone(service);
    },
    LONG,
  );

  test('that the daemon says nothing of until the end is not told as unwell', async () => {
    const service = await world.up(world.service({ imageId: nodeImage, command: server(3000, WELL) }));
    await proxy.refuse();
    try {
      const dockerHost = proxy.dockerHost;
      expect(await world.healthy(service, { tcp: { port: 3000 }, deadlineSeconds: 1 }, { dockerHost })).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'daemon_unreachable' },
      });
    } finally {
      await proxy.accept();
    }
    await gone(service);
  });

  test('is asked for nothing that a path could hold besides a path', async () => {
    const service = await world.up(world.service({ imageId: nodeImage, command: server(3000, WELL) }));
    for (const path of ['/a b', '/a\r\nX: y', '/\n', 'x', ''])
      await expect(world.healthy(service, { http: { port: 3000, path } })).rejects.toThrow(TypeError);
    const odd = `/$(touch /tmp/a)'"\\;&|<>*!%20%s?y=$HOME#{x}`.replaceAll(' ', '$IFS') + '`id`';
    facts(await world.healthy(service, { http: { port: 3000, path: odd } }));
    expect(await world.log(service)).toContain(`GET ${odd} HTTP/1.1\r\nHost: localhost:3000\r\n`);
    await gone(service);
  });
});

describe('published ports', () => {
  const listen = async (port: number): Promise<() => Promise<unknown>> => {
    const listener = createServer();
    await new Promise<void>((resolve) => listener.listen(port, '127.0.0.1', resolve));
    return () => new Promise((resolve) => listener.close(resolve));
  };

  test(
    'are of the host’s range, and neither given to others, nor another container’s, nor listened on',
    async () => {
      const range = { from: 24_200, to: 24_204 };
      const resting = await docker.createContainer({
        Image: world.imageId,
        HostConfig: { PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '24201' }] } },
      });
      const close = await listen(24_202);
      try {
        const service = world.service({
          imageId: nodeImage,
          command: server(3000, WELL),
          ...world.published([3000, 3001], range, [24_203]),
        });
        const { ports } = facts(await world.container(service)) as { ports: Record<string, number> };
        expect(Object.keys(ports)).toEqual(['3000', '3001']);
        expect(Object.values(ports).sort()).toEqual([24_200, 24_204]);
        facts(await world.act(service, 'secrets'));
        facts(await world.act(service, 'start'));
        facts(await world.healthy(service, { tcp: { port: 3000 } }));
        expect((await fetch(`http://127.0.0.1:${ports['3000']}/`)).status).toBe(200);
        const next = world.service({ ...world.published([3000], range, [24_203]) });
        expect(await world.container(next)).toMatchObject(refusal('ports_unavailable'));
        expect(await world.ofToken(next)).toEqual(NOTHING);
        facts(await world.act(service, 'remove-service'));
      } finally {
        await close();
        await resting.remove({ v: true });
      }
    },
    LONG,
  );

  test(
    'B077: one that is taken between its choice and the start is a known refusal, and nothing of ours runs',
    async () => {
      const service = world.service({ ...world.published([3000], { from: 24_210, to: 24_210 }) });
      facts(await world.container(service));
      facts(await world.act(service, 'secrets'));
      const close = await listen(24_210);
      try {
        expect(await world.act(service, 'start')).toMatchObject(
          refusal('port_taken', expect.stringContaining('24210')),
        );
        expect((await inspect(service)).State).toMatchObject({ Running: false, Status: 'created' });
      } finally {
        await close();
      }
      facts(await world.act(service, 'remove-service'));
    },
    LONG,
  );

  test(
    'whose network is not there, is another environment’s, or lets nobody in, leave no container',
    async () => {
      const service = world.service({ ...world.published([3000], { from: 24_220, to: 24_229 }) });
      const on = (networkId: string): TestService => ({
        ...service,
        spec: { ...service.spec, published: { ...service.spec.published!, networkId } },
      });
      expect(await world.container(on('0'.repeat(64)))).toMatchObject(refusal('foreign_object'));
      const bridge = await docker.getNetwork('host').inspect();
      expect(await world.container(on((bridge as { Id: string }).Id))).toMatchObject(refusal('foreign_object'));
      proxy.once(/^POST \/networks\/.*\/connect/, { status: 403, body: { message: 'not today' } });
      expect(await world.container(service, { dockerHost: proxy.dockerHost })).toMatchObject(
        refusal('network_not_connected', expect.stringContaining('not today')),
      );
      expect(await world.ofToken(service)).toEqual(NOTHING);
    },
    LONG,
  );
});

describe('what the daemon does wrong', () => {
  const through = { dockerHost: '', deadlineMs: 6_000 };
  beforeAll(() => {
    through.dockerHost = proxy.dockerHost;
  });
  const CREATE = /^POST \/containers\/create/;
  const failure = (status: number, message: string, done = false): CallFate => ({ status, body: { message }, done });

  test(
    'B079: a container of somebody else under our name is refused, and stays',
    async () => {
      const service = world.service();
      const labels = markLabels({
        installation: randomUUID(),
        kind: 'service',
        id: service.spec.serviceId,
        token: service.token,
      });
      const name = `surefoot-service-${service.token}`;
      const foreign = await docker.createContainer({ name, Image: world.imageId, Labels: labels });
      try {
        expect(await world.container(service)).toMatchObject(refusal('foreign_object', expect.stringContaining(name)));
        service.containerId = foreign.id;
        for (const kind of ['secrets', 'start', 'publish-service', 'remove-service'] as const)
          expect(await world.act(service, kind)).toMatchObject(refusal('foreign_object'));
        expect(await world.healthy(service)).toMatchObject(refusal('foreign_object'));
        expect((await foreign.inspect()).State.Status).toBe('created');
      } finally {
        await foreign.remove({ v: true });
      }
    },
    LONG,
  );

  test.each([
    [500, 'the driver is having a bad day', 'container_not_created'],
    [400, 'invalid option', 'container_not_created'],
    [404, 'No such image', 'container_not_created'],
    [500, 'mkdir /var/lib/docker/overlay2/x: no space left on device', 'disk_full'],
  ])('a create that is answered with %i, “%s”, has made nothing', async (status, message, code) => {
    const service = world.service();
    proxy.once(CREATE, failure(status, message));
    expect(await world.container(service, through)).toMatchObject(refusal(code, expect.stringContaining(message)));
    expect(await world.ofToken(service)).toEqual(NOTHING);
  });

  test('a create that is answered with 500 although it was done is found to be done', async () => {
    const service = world.service();
    proxy.once(CREATE, failure(500, 'timed out', true));
    facts(await world.container(service, through));
    expect(await world.ofToken(service)).toEqual({ containers: 1, volumes: 2 });
    facts(await world.act(service, 'remove-service'));
  });

  test.each([
    ['a bad day', 'service_not_started'],
    ['write /var/lib/docker/containers/x: no space left on device', 'disk_full'],
  ])('a start that is answered with 500, “%s”, is known to have failed', async (message, code) => {
    const service = world.service();
    facts(await world.container(service));
    proxy.once(/^POST .*\/start/, failure(500, `${message}, ${FILES.API_KEY}`));
    const result = await world.act(service, 'start', through);
    expect(result).toMatchObject(refusal(code, expect.stringContaining(message)));
    expect(JSON.stringify(result)).not.toContain(FILES.API_KEY);
    facts(await world.act(service, 'remove-service'));
  });

  test(
    'B054: a name that is taken and that no container has is told, and asked for once; another try has another name',
    async () => {
      const service = world.service();
      proxy.rule((call) => (CREATE.test(call) ? failure(409, 'Conflict. The name is in use') : 'pass'));
      const before = proxy.calls.length;
      expect(await world.container(service, { ...through, deadlineMs: 2_000 })).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'container_missing', message: expect.stringContaining(`surefoot-service-${service.token}`) },
      });
      expect(proxy.calls.slice(before).filter((call) => CREATE.test(call))).toHaveLength(1);
      proxy.rule(() => 'pass');
      facts(await world.container(service, { ...through, token: randomUUID() }));
      facts(await world.act(service, 'remove-service'));
    },
    LONG,
  );

  test('B054: a create that fails for a bad option leaves the name free', async () => {
    const service = world.service({ limits: { memoryBytes: 1, cpus: 1, pids: 1 } });
    expect(await world.container(service)).toMatchObject(
      refusal('container_not_created', expect.stringMatching(/memory limit/i)),
    );
    const right = { ...service, spec: { ...service.spec, limits: { memoryBytes: 64 * MIB, cpus: 1, pids: 64 } } };
    facts(await world.container(right));
    facts(await world.act(right, 'remove-service'));
  });

  describe('B069: a create that failed and left a volume behind', () => {
    const volumeOf = async (service: TestService): Promise<string> => {
      const name = `surefoot-${randomUUID()}`;
      const mark = { installation: world.installation, kind: 'volume', id: service.spec.serviceId } as const;
      await docker.createVolume({ Name: name, Labels: markLabels({ ...mark, token: service.token }) });
      return name;
    };

    test('removes it', async () => {
      const service = world.service();
      proxy.once(CREATE, failure(500, 'broken'));
      await volumeOf(service);
      expect(await world.container(service, through)).toMatchObject(refusal('container_not_created'));
      expect(await world.ofToken(service)).toEqual(NOTHING);
    });

    test(
      'names it where it cannot be removed, with the reason, and does not say that nothing is there',
      async () => {
        const service = world.service();
        const name = await volumeOf(service);
        const user = await docker.createContainer({
          Image: world.imageId,
          HostConfig: { Binds: [`${name}:/held`] },
        });
        try {
          proxy.once(CREATE, failure(500, 'broken'));
          expect(await world.container(service, { ...through, deadlineMs: 2_000 })).toMatchObject({
            outcome: 'unknown',
            reason: { code: 'container_not_created', message: expect.stringMatching(new RegExp(`${name}.*in use`)) },
          });
        } finally {
          await user.remove({ v: true });
        }
        service.containerId = '0'.repeat(64);
        facts(await world.act(service, 'remove-service'));
        expect(await world.ofToken(service)).toEqual(NOTHING);
      },
      LONG,
    );
  });

  test(
    'a container that came out without its labelled volume is told and removed',
    async () => {
      const service = world.service({ limits: { memoryBytes: 64 * MIB, cpus: 1, pids: 64 } });
      const name = `surefoot-service-${service.token}`;
      const mark = { installation: world.installation, kind: 'service', id: service.spec.serviceId } as const;
      await docker.createContainer({
        name,
        Image: world.imageId,
        Labels: markLabels({ ...mark, token: service.token }),
        HostConfig: { Mounts: [{ Type: 'volume', Target: '/run/surefoot' } as never] },
      });
      const result = await world.container(service);
      expect(result).toMatchObject(refusal('container_differs'));
      for (const part of ['Memory', 'CapDrop', 'networks', 'is not labelled as ours', 'PidsLimit'])
        expect(JSON.stringify(result)).toContain(part);
      await expect(docker.getContainer(name).inspect()).rejects.toThrow('404');
    },
    LONG,
  );

  describe('B064: a removal', () => {
    test('whose first try fails is tried again, and is done when nothing is listed', async () => {
      const service = world.service();
      facts(await world.container(service));
      proxy.once(/^DELETE/, failure(500, 'device or resource busy'));
      expect(facts(await world.act(service, 'remove-service', through))).toEqual({
        serviceId: service.spec.serviceId,
      });
      expect(await world.ofToken(service)).toEqual(NOTHING);
    });

    test.each([
      ['container', /^DELETE \/containers/, { containers: 1, volumes: 2 }],
      ['volume', /^DELETE \/(containers.*v=true|volumes)/, { containers: 0, volumes: 2 }],
    ])('that the daemon says is done, and whose %s is still listed, is not done', async (what, calls, left) => {
      const service = world.service();
      facts(await world.container(service));
      if (what === 'volume') await docker.getContainer(service.containerId).remove({ v: false });
      proxy.rule((call) => (calls.test(call) ? { status: 204, body: {} } : 'pass'));
      expect(await world.act(service, 'remove-service', { ...through, deadlineMs: 2_000 })).toMatchObject({
        outcome: 'unknown',
        reason: { code: 'still_there' },
      });
      expect(await world.ofToken(service)).toEqual(left);
      proxy.rule(() => 'pass');
      facts(await world.act(service, 'remove-service', through));
      expect(await world.ofToken(service)).toEqual(NOTHING);
    });

    test(
      'takes along what other tries left, runs or not, and nothing of a neighbour',
      async () => {
        const service = world.service();
        const neighbour = world.service();
        facts(await world.container(service));
        await world.up({ ...service, token: randomUUID() });
        facts(await world.container(neighbour));
        facts(await world.act(service, 'remove-service'));
        expect(await world.count(`surefoot.id=${service.spec.serviceId}`)).toEqual(NOTHING);
        expect(await world.ofToken(neighbour)).toEqual({ containers: 1, volumes: 2 });
        facts(await world.act(neighbour, 'remove-service'));
      },
      LONG,
    );
  });

  test('files that the daemon does not take are told as such, and the service is not started with a part of them', async () => {
    const service = world.service();
    facts(await world.container(service));
    proxy.once(/^PUT .*\/archive/, failure(500, 'write database_url: no space left on device'));
    expect(await world.act(service, 'secrets', through)).toMatchObject(refusal('disk_full'));
    proxy.once(/^PUT .*\/archive/, { status: 200, body: {} });
    const missing = await world.act(service, 'secrets', through);
    expect(missing).toMatchObject(refusal('files_differ', expect.stringContaining('there is no file API_KEY of 0:0')));
    expect(JSON.stringify(missing)).not.toContain(FILES.API_KEY);
    facts(await world.act(service, 'secrets'));
    facts(await world.act(service, 'remove-service'));
  });

  test('a restart policy that does not come about is not told as done', async () => {
    const service = await world.up(world.service());
    for (const answer of [{ status: 200, body: {} }, failure(500, 'not today')]) {
      proxy.once(/^POST .*\/update/, answer);
      expect(await world.act(service, 'publish-service', through)).toMatchObject(refusal('policy_not_set'));
    }
    proxy.once(/^POST .*\/update/, failure(500, 'done, though', true));
    facts(await world.act(service, 'publish-service', through));
    facts(await world.act(service, 'remove-service'));
  });
});

test('after all this there is nothing left of any service', async () => {
  const installation = `surefoot.installation=${world.installation}`;
  expect(await world.count(installation, 'surefoot.kind=service')).toEqual(NOTHING);
  expect(await world.count(installation, 'surefoot.service')).toEqual(NOTHING);
});
