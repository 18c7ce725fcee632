/** A gateway that answers as it is told, and remembers what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Asked {
  /** `POST /v1/projects` */
  readonly call: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/** `drop` closes the connection without an answer; a string is sent as it is, and the stream ends. */
export type ScriptedAnswer = 'drop' | { readonly status?: number; readonly body?: unknown; readonly text?: string };

export class ScriptedGateway {
  readonly asked: Asked[] = [];
  readonly #answers = new Map<string, ScriptedAnswer[]>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  static async start(): Promise<ScriptedGateway> {
    const gateway = new ScriptedGateway();
    await new Promise<void>((resolve) => gateway.#server.listen(0, '127.0.0.1', resolve));
    return gateway;
  }

  get env(): NodeJS.ProcessEnv {
    const { port } = this.#server.address() as AddressInfo;
    return { SUREFOOT_URL: `http://127.0.0.1:${port}/`, SUREFOOT_API_KEY: 'sfk_test' };
  }

  /** Answers to a call, one after the other; the last one stays. */
  answer(call: string, ...answers: readonly ScriptedAnswer[]): void {
    this.#answers.set(call, [...answers]);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
    const call = `${request.method ?? ''} ${request.url ?? ''}`;
    this.asked.push({ call, headers: request.headers, body: text === '' ? undefined : JSON.parse(text) });
    const answers = this.#answers.get(call);
    const answer = (answers?.length ?? 0) > 1 ? answers?.shift() : answers?.[0];
    if (answer === 'drop') {
      request.socket.destroy();
      return;
    }
    const { status = 200, body, text: plain } = answer ?? { status: 404, body: problem('not_found') };
    response.writeHead(status, { 'content-type': plain === undefined ? 'application/json' : 'text/event-stream' });
    response.end(plain ?? JSON.stringify(body));
  }
}

export function problem(code: string, members: object = {}): object {
  return {
    type: `urn:surefoot:problem:${code}`,
    title: code,
    status: 400,
    code,
    detail: `detail of ${code}`,
    errors: [],
    ...members,
  };
}
