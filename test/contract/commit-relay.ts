/** A relay in front of a PostgreSQL server that loses exactly one COMMIT: before it arrives, or after it took effect. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A simple query message (PostgreSQL manual, 55.7): `Q`, length, text, NUL. */
const COMMIT = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1');

export class CommitRelay {
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => this.#relay(client));
  readonly #target: URL;
  #lose: 'request' | 'reply' | undefined;
  lost = 0;

  private constructor(address: string) {
    this.#target = new URL(address);
  }

  static async inFrontOf(address: string): Promise<CommitRelay> {
    const relay = new CommitRelay(address);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.hostname = '127.0.0.1';
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** The next COMMIT is lost, once. */
  loseNext(what: 'request' | 'reply'): void {
    this.#lose = what;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #relay(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    let deaf = false;
    const end = (): void => {
      client.resetAndDestroy();
      server.destroy();
    };
    client.on('data', (bytes) => {
      const what = bytes.includes(COMMIT) ? this.#lose : undefined;
      if (what === undefined) {
        server.write(bytes);
        return;
      }
      this.#lose = undefined;
      this.lost += 1;
      if (what === 'request') end();
      else {
        deaf = true;
        server.write(bytes);
      }
    });
    server.on('data', (bytes) => {
      // The server has answered, so the transaction is committed; the client never hears of it.
      if (deaf) end();
      else client.write(bytes);
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
