/** An engine, one environment's network with the engine in it, and services on it that are made act by act. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type Dockerode from 'dockerode';
import type { ActContext, ActResult } from '#effects';
import type { EffectKind, EffectSpecs } from '#protocol';
import { EffectsWorld, facts } from './effects-world.ts';
import { docker } from './engine-world.ts';

/** Apart from what the daemon of the stack uses itself. */
const POOL = '10.213.0.0/16';

export interface TestService {
  readonly spec: EffectSpecs['container'];
  readonly token: string;
  readonly files: Readonly<Record<string, string>>;
  containerId: string;
}

type ServiceKind = 'secrets' | 'start' | 'healthy' | 'publish-service' | 'remove-service';
type More = Partial<ActContext>;

export const DATABASE_PASSWORD = 'p%4055/ w?rd';
const DATABASE_URL = `postgresql://hello_app:${encodeURIComponent(DATABASE_PASSWORD)}@db:5432/hello?sslmode=verify-full`;

export const FILES = {
  database_url: DATABASE_URL,
  'ca.pem': '-----BEGIN CERTIFICATE-----\nnot secret\n-----END CERTIFICATE-----\n',
  API_KEY: 'the-api-key-0123456789',
};

export class ServicesWorld {
  readonly effects: EffectsWorld;
  readonly environmentId: string;
  readonly networkId: string;
  readonly portNetworkId: string;
  readonly #images: string[] = [];

  private constructor(effects: EffectsWorld, networkId: string, portNetworkId: string, environmentId: string) {
    this.effects = effects;
    this.networkId = networkId;
    this.portNetworkId = portNetworkId;
    this.environmentId = environmentId;
  }

  static async make(): Promise<ServicesWorld> {
    const effects = await EffectsWorld.make();
    const environmentId = randomUUID();
    const { engine } = effects;
    const owner = { type: 'environment', id: environmentId } as const;
    const networkId = facts(await engine.perform('network', { owner, pool: POOL }))['networkId'] as string;
    const engineContainerId = engine.identities.containerId!;
    facts(await engine.perform('join-network', { environmentId, networkId, engineContainerId }));
    const ports = facts(await engine.perform('port-network', { environmentId, pool: POOL }));
    return new ServicesWorld(effects, networkId, ports['networkId'] as string, environmentId);
  }

  async remove(): Promise<void> {
    await this.effects.remove();
    for (const image of this.#images) await docker.getImage(image).remove({ force: true }).catch(ignoreAbsent);
  }

  get dockerHost(): string {
    return this.effects.engine.dockerHost;
  }

  get installation(): string {
    return this.effects.engine.installation;
  }

  get imageId(): string {
    return this.effects.engine.identities.imageId!;
  }

  service(
    more: Partial<EffectSpecs['container']> & { readonly files?: Readonly<Record<string, string>> } = {},
  ): TestService {
    const { files = FILES, ...spec } = more;
    return {
      token: randomUUID(),
      files,
      containerId: '',
      spec: {
        environmentId: this.environmentId,
        serviceId: randomUUID(),
        name: 'web',
        imageId: this.imageId,
        networkId: this.networkId,
        command: ['sleep', 'infinity'],
        env: {},
        limits: { memoryBytes: 256 * 1024 * 1024, cpus: 1, pids: 64 },
        readOnly: false,
        ...spec,
      },
    };
  }

  /** With ports of the host out of a range of its own. */
  published(
    containerPorts: readonly number[],
    ports: { readonly from: number; readonly to: number },
    taken: readonly number[] = [],
  ): Required<Pick<EffectSpecs['container'], 'published'>> {
    return { published: { address: '127.0.0.1', ports, taken, networkId: this.portNetworkId, containerPorts } };
  }

  /** Under the service's own token, or under a given one. */
  async container(service: TestService, more: More & { readonly token?: string } = {}): Promise<ActResult> {
    const { token = service.token, ...context } = more;
    const result = await this.effects.engine.perform('container', service.spec, { token, ...context });
    if (result.outcome === 'applied') service.containerId = result.facts['containerId'] as string;
    return result;
  }

  act(
    service: TestService,
    kind: Exclude<ServiceKind, 'healthy'>,
    more: More & { readonly token?: string } = {},
  ): Promise<ActResult> {
    return this.#perform(service, kind, this.#of(service), more);
  }

  healthy(
    service: TestService,
    health: Partial<EffectSpecs['healthy']['health']> = {},
    more: More = {},
    engineContainerId: string = this.effects.engine.identities.containerId!,
  ): Promise<ActResult> {
    return this.#perform(
      service,
      'healthy',
      {
        ...this.#of(service),
        networkId: service.spec.networkId,
        health: { deadlineSeconds: 30, ...health },
        engineContainerId,
      },
      more,
    );
  }

  /** Made, given its files, and started. */
  async up(service: TestService): Promise<TestService> {
    facts(await this.container(service));
    facts(await this.act(service, 'secrets'));
    facts(await this.act(service, 'start'));
    return service;
  }

  #of({ spec: { environmentId, serviceId }, containerId }: TestService): EffectSpecs['start'] {
    return { environmentId, serviceId, containerId };
  }

  #perform<K extends EffectKind>(service: TestService, kind: K, spec: EffectSpecs[K], more: More): Promise<ActResult> {
    return this.effects.engine.perform(kind, spec, { secrets: { files: service.files }, ...more });
  }

  /** The engine's image with other settings: lines as in a Dockerfile. @returns its id */
  async imageWith(...changes: readonly string[]): Promise<string> {
    if (changes.length === 0) return this.imageId;
    const container = await docker.createContainer({ Image: this.imageId });
    try {
      return await this.#commit(container, changes);
    } finally {
      await container.remove({ v: true });
    }
  }

  /** The engine's image and the Node that runs this test. @returns its id */
  async nodeImage(...changes: readonly string[]): Promise<string> {
    const container = await docker.createContainer({ Image: this.imageId });
    try {
      await this.#docker('cp', process.execPath, `${container.id}:/usr/local/bin/node`);
      return await this.#commit(container, changes);
    } finally {
      await container.remove({ v: true });
    }
  }

  async #commit(container: Dockerode.Container, changes: readonly string[]): Promise<string> {
    const { Id } = (await container.commit({ changes: changes.join('\n') })) as { Id: string };
    this.#images.push(Id);
    return Id;
  }

  /** An image with nothing in it. @returns its id */
  async emptyImage(...changes: readonly string[]): Promise<string> {
    // Two blocks of nothing: an archive without a file.
    const args = ['-H', this.dockerHost, 'import', ...changes.flatMap((change) => ['--change', change]), '-'];
    const importing = promisify(execFile)('docker', args);
    importing.child.stdin?.end(Buffer.alloc(1024));
    const id = (await importing).stdout.trim();
    this.#images.push(id);
    return id;
  }

  /** What a program says inside a container, on either stream. */
  async inside(containerId: string, command: readonly string[], user = 'root'): Promise<string> {
    return this.#docker('exec', '-u', user, containerId, ...command);
  }

  async #docker(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await promisify(execFile)('docker', ['-H', this.dockerHost, ...args]);
    return stdout + stderr;
  }

  /** What it said so far. */
  log({ containerId }: TestService): Promise<string> {
    return this.#docker('logs', containerId);
  }

  /** Containers and volumes with these labels, as many as there are. */
  async count(...labels: readonly string[]): Promise<{ readonly containers: number; readonly volumes: number }> {
    const filters = { label: [...labels] };
    const containers = await docker.listContainers({ all: true, filters });
    const { Volumes } = await docker.listVolumes({ filters });
    return { containers: containers.length, volumes: Volumes.length };
  }

  ofToken({ token }: TestService): Promise<{ readonly containers: number; readonly volumes: number }> {
    return this.count(`surefoot.installation=${this.installation}`, `surefoot.token=${token}`);
  }
}

/** A TCP server that gives every request the same answer, as a command of an image with Node. */
export function server(port: number, answer: string): readonly string[] {
  const script = `
    const [port, answer] = process.argv.slice(1);
    require('node:net').createServer((socket) => {
      socket.on('error', () => {});
      let asked = '';
      // A request comes in pieces, as the network likes.
      socket.on('data', (piece) => {
        asked += piece;
        if (!asked.includes('\\r\\n\\r\\n')) return;
        console.log(asked);
        socket.end(answer);
      });
    }).listen(Number(port));`;
  return ['node', '-e', script, String(port), answer];
}

export const WELL = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

function ignoreAbsent(error: unknown): void {
  if ((error as { statusCode?: number }).statusCode !== 404) throw error;
}
