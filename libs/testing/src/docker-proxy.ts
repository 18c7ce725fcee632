/**
 * A relay between a client and the Docker daemon, on a Unix socket, that understands what is asked for: a test can hold a
 * call, lose it, lose the answer to it or give another one, at exactly the call that it means.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';

/**
 * What becomes of a call. `lose-request`: the connection breaks and the daemon never sees it. `lose-reply`: the daemon has
 * done it, and the connection breaks before its answer. `hold`: it waits in the relay until `release`, also when its client
 * has given up meanwhile. `status`: the relay answers, and the daemon never sees it, or, with `done`, has done it.
 */
export type CallFate =
  | 'pass'
  | 'lose-request'
  | 'lose-reply'
  | 'hold'
  | { readonly status: number; readonly body: object; readonly done?: boolean };

/** @param call method and path, as in `POST /containers/create?name=x` */
export type CallRule = (call: string) => CallFate | Promise<CallFate>;

const PASS: CallRule = () => 'pass';

export class DockerProxy {
  /** As DOCKER_HOST. */
  readonly dockerHost: string;
  /** Every call that came. */
  readonly calls: string[] = [];
  readonly #folder: string;
  readonly #target: string;
  readonly #server = createServer((incoming, answer) => {
    this.#relay(incoming, answer).catch(() => incoming.socket.destroy());
  });
  readonly #held: (() => void)[] = [];
  #rule: CallRule = PASS;

  private constructor(target: string) {
    this.#target = target;
    this.#folder = mkdtempSync(join(tmpdir(), 'docker-proxy-'));
    this.dockerHost = `unix://${join(this.#folder, 'docker.sock')}`;
  }

  /** @param dockerHost as DOCKER_HOST, a Unix socket */
  static async inFrontOf(dockerHost: string): Promise<DockerProxy> {
    const proxy = new DockerProxy(new URL(dockerHost).pathname);
    await proxy.accept();
    return proxy;
  }

  /** From now on; calls that are held stay held. */
  rule(rule: CallRule): void {
    this.#rule = rule;
  }

  /** The first call that `matches` meets `fate`; everything else, and everything after it, passes. */
  once(matches: RegExp, fate: CallFate): void {
    this.#rule = (call) => {
      if (!matches.test(call)) return 'pass';
      this.#rule = PASS;
      return fate;
    };
  }

  /** Lets go on what is held. */
  release(): void {
    for (const go of this.#held.splice(0)) go();
  }

  get held(): number {
    return this.#held.length;
  }

  get listening(): boolean {
    return this.#server.listening;
  }

  /** Listens again. */
  async accept(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(new URL(this.dockerHost).pathname, resolve));
  }

  /** As if the daemon were not there. */
  async refuse(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async close(): Promise<void> {
    this.release();
    if (this.#server.listening) await this.refuse();
    rmSync(this.#folder, { recursive: true });
  }

  async #relay(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const call = `${incoming.method ?? ''} ${incoming.url ?? ''}`;
    this.calls.push(call);
    const body = await bodyOf(incoming);
    const fate = await this.#rule(call);
    if (fate === 'lose-request') {
      incoming.socket.destroy();
      return;
    }
    if (fate === 'hold') await new Promise<void>((resolve) => this.#held.push(resolve));
    if (typeof fate === 'object') {
      if (fate.done === true) (await this.#forward(incoming, body)).resume();
      answer.writeHead(fate.status, { 'content-type': 'application/json' }).end(JSON.stringify(fate.body));
      return;
    }
    const reply = await this.#forward(incoming, body);
    if (fate === 'lose-reply') {
      reply.resume();
      incoming.socket.destroy();
      return;
    }
    if (answer.destroyed) {
      reply.resume();
      return;
    }
    answer.writeHead(reply.statusCode ?? 500, reply.headers);
    // What is streamed begins before it goes on.
    answer.flushHeaders();
    pipeline(reply, answer, () => undefined);
  }

  #forward(incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { method, url, headers } = incoming;
      const { 'transfer-encoding': _chunked, ...kept } = headers;
      const forwarded = request({
        socketPath: this.#target,
        method,
        path: url,
        headers: { ...kept, connection: 'close', 'content-length': body.length },
        agent: false,
      });
      forwarded.once('response', resolve);
      forwarded.once('error', reject);
      forwarded.end(body);
    });
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
