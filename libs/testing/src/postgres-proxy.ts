/**
 * A relay between a PostgreSQL client and its server that understands what the client asks for, so that a test can hold a
 * statement, lose it, or lose the answer to it, at exactly the statement that it means. Without TLS: for Unix sockets and
 * for the stack's own catalog.
 */
import { connect, createServer, type AddressInfo, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

/**
 * What becomes of a statement. `lose-request`: the connection breaks and the server never sees it. `lose-reply`: the server
 * has done it, and the connection breaks before its answer. `hold`: it waits in the relay until `release`. `strand`: the
 * same, but for the client the connection breaks at once: bytes in flight, whose sender is gone.
 */
export type StatementFate = 'pass' | 'lose-request' | 'lose-reply' | 'hold' | 'strand';

/** @param text of the statement, as the client sent it */
export type StatementRule = (text: string) => StatementFate;

interface Held {
  readonly text: string;
  readonly forward: () => void;
  readonly lose: () => void;
}

const PASS: StatementRule = () => 'pass';

export class PostgresProxy {
  readonly #target: NetConnectOpts;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #held: Held[] = [];
  readonly #stranded: Socket[] = [];
  /** Every statement that came, over all connections. */
  readonly statements: string[] = [];
  /** Connections that clients have made. */
  connections = 0;
  #rule: StatementRule = PASS;

  private constructor(target: NetConnectOpts) {
    this.#target = target;
    this.#server = createServer((client) => this.#relay(client));
  }

  /** On a Unix socket in `folder`, named as PostgreSQL names its own, in front of the one in `serverFolder`. */
  static async inFolder(folder: string, serverFolder: string): Promise<PostgresProxy> {
    const proxy = new PostgresProxy({ path: join(serverFolder, '.s.PGSQL.5432') });
    await new Promise<void>((resolve) => proxy.#server.listen(join(folder, '.s.PGSQL.5432'), resolve));
    return proxy;
  }

  /** On loopback, in front of the server of a `postgres://` address. */
  static async inFrontOf(address: string): Promise<PostgresProxy> {
    const { hostname, port } = new URL(address);
    const proxy = new PostgresProxy({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** The same address, through this proxy. */
  through(address: string): string {
    const url = new URL(address);
    url.hostname = '127.0.0.1';
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** From now on; statements that are held stay held. */
  rule(rule: StatementRule): void {
    this.#rule = rule;
  }

  /** The first statement that `matches` meets `fate`; everything else, and everything after it, passes. */
  once(matches: RegExp, fate: StatementFate): void {
    this.#rule = (text) => {
      if (!matches.test(text)) return 'pass';
      this.#rule = PASS;
      return fate;
    };
  }

  /** Texts of the statements that wait here. */
  get held(): readonly string[] {
    return this.#held.map(({ text }) => text);
  }

  /** Lets go on what is held. */
  release(): void {
    for (const { forward } of this.#held.splice(0)) forward();
  }

  /** Ends the connections to the server that no client has any more. */
  hangUp(): void {
    for (const server of this.#stranded.splice(0)) server.destroy();
  }

  /** Breaks the connections of what is held; the server never sees it. */
  lose(): void {
    for (const { lose } of this.#held.splice(0)) lose();
  }

  /** How often a statement came that matches. */
  count(matches: RegExp): number {
    return this.statements.filter((text) => matches.test(text)).length;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #relay(client: Socket): void {
    this.connections += 1;
    const server = connect(this.#target);
    const breakBoth = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        if (!stranded) breakBoth();
      });
    }
    let losingReply = false;
    let stranded = false;
    server.on('data', (bytes) => (losingReply ? breakBoth() : client.write(bytes)));
    const reader = new FrontendReader();
    /** Messages after a held one wait behind it. */
    let queue: Buffer[] | undefined;
    client.on('data', (bytes) => {
      for (const { message, text } of reader.read(bytes)) {
        if (queue !== undefined) {
          queue.push(message);
          continue;
        }
        if (text !== undefined) this.statements.push(text);
        const fate = text === undefined ? 'pass' : this.#rule(text);
        switch (fate) {
          case 'pass':
            server.write(message);
            break;
          case 'lose-request':
            breakBoth();
            return;
          case 'lose-reply':
            losingReply = true;
            server.write(message);
            break;
          case 'strand':
          case 'hold':
            queue = [message];
            this.#held.push({
              text: text ?? '',
              forward: () => {
                for (const waiting of queue ?? []) server.write(waiting);
                queue = undefined;
              },
              lose: breakBoth,
            });
            if (fate === 'strand') {
              stranded = true;
              this.#stranded.push(server);
              client.destroy();
            }
            break;
        }
      }
    });
  }
}

interface Frontend {
  readonly message: Buffer;
  /** Of the statement that this message runs. */
  readonly text?: string;
}

/** Cuts a client's bytes into messages (PostgreSQL manual, 53.7 "Message Formats"). */
class FrontendReader {
  readonly #prepared = new Map<string, string>();
  #bytes = Buffer.alloc(0);
  #started = false;

  read(bytes: Buffer): readonly Frontend[] {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const messages: Frontend[] = [];
    for (;;) {
      const message = this.#next();
      if (message === undefined) return messages;
      messages.push(message);
    }
  }

  #next(): Frontend | undefined {
    // The first message has no type.
    const head = this.#started ? 1 : 0;
    if (this.#bytes.length < head + 4) return undefined;
    const end = head + this.#bytes.readUInt32BE(head);
    if (this.#bytes.length < end) return undefined;
    const message = this.#bytes.subarray(0, end);
    this.#bytes = this.#bytes.subarray(end);
    if (head === 0) {
      this.#started = true;
      return { message };
    }
    const body = message.subarray(5);
    switch (String.fromCharCode(message[0] ?? 0)) {
      case 'Q':
        return { message, text: textAt(body, 0) };
      case 'P': {
        const name = textAt(body, 0);
        const text = textAt(body, body.indexOf(0) + 1);
        if (name === '') return { message, text };
        // Parsed once, run often.
        this.#prepared.set(name, text);
        return { message };
      }
      case 'B': {
        const text = this.#prepared.get(textAt(body, body.indexOf(0) + 1));
        return text === undefined ? { message } : { message, text };
      }
      default:
        return { message };
    }
  }
}

function textAt(bytes: Buffer, start: number): string {
  return bytes.subarray(start, bytes.indexOf(0, start)).toString('utf8');
}
