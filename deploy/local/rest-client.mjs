import { SetupFailure, messageOf } from './failure.mjs';

/** @typedef {{ status: number, body: any }} Answer */

const ANSWER_MS = 30_000;

/** The installation's REST interface, with the administrator's key. */
export class RestClient {
  /** @param {Record<string, string>} localEnv */
  constructor(localEnv) {
    this.base = localEnv.SUREFOOT_URL ?? '';
    this.key = localEnv.SUREFOOT_API_KEY ?? '';
  }

  /**
   * @param {'GET' | 'POST'} method
   * @param {string} path
   * @param {{ body?: unknown, idempotencyKey?: string }} [options]
   * @returns {Promise<Answer>} whatever the status
   */
  async call(method, path, { body, idempotencyKey } = {}) {
    const headers = {
      authorization: `Bearer ${this.key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    };
    try {
      const response = await fetch(`${this.base}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
    } catch (error) {
      throw new SetupFailure(
        `the gateway at ${this.base} did not answer ${method} ${path}: ${messageOf(error)}`,
        'read log/gateway.log in the state folder, then run this again.',
        { cause: error },
      );
    }
  }

  /** @param {string} path @returns {Promise<any>} the body of a 200 */
  async get(path) {
    const answer = await this.call('GET', path);
    if (answer.status === 200) return answer.body;
    throw refused(`GET ${path}`, answer);
  }
}

/**
 * @param {string} what
 * @param {Answer} answer
 */
export function refused(what, { status, body }) {
  const said = body?.detail ?? body?.title ?? body?.code ?? 'no reason given';
  return new SetupFailure(
    `the gateway refused ${what} (${status}): ${said}`,
    'read log/gateway.log in the state folder, then run this again.',
  );
}
