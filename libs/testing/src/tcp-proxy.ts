/** A TCP relay on loopback between a client and its server, that can fail in the ways networks do. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class TcpProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #server: Server;
  #port = 0;
  #frozen = false;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
    this.#server = createServer((client) => this.#relay(client));
  }

  /** @param address any URL with a host and a port */
  static async inFrontOf(address: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(address);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) });
    await proxy.accept();
    return proxy;
  }

  /** The same URL, through this proxy. */
  through(address: string): string {
    const url = new URL(address);
    url.hostname = '127.0.0.1';
    url.port = String(this.#port);
    return url.href;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Listens again, on the same port. */
  async accept(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** New connections are refused; those that are there go on. */
  async refuse(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    if (this.#pairs.size === 0) await closed;
  }

  /** Resets every connection; new ones are served. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
    this.#pairs.clear();
  }

  /** Bytes are taken and go nowhere until `thaw`: nothing breaks, nothing answers. */
  freeze(): void {
    this.#frozen = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  thaw(): void {
    this.#frozen = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.cut();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  #relay(client: Socket): void {
    const server = connect(this.#target);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.setNoDelay(true);
      from.on('data', (bytes) => to.write(bytes));
      from.on('end', () => to.end());
      from.on('error', () => undefined);
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#frozen) from.pause();
    }
  }
}
