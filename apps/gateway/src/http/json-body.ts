/** Bodies as JSON, strictly: a byte that is not UTF-8 is refused here rather than replaced, and stored as a replacement. */
import { Problem } from '#kernel';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws Problem `invalid_json` */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(utf8.decode(bytes), refusePrototype);
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The parser's text quotes the body, which may hold what nobody should log.
    throw new Problem('invalid_json', 'the body is not JSON in UTF-8');
  }
}

function refusePrototype(key: string, value: unknown): unknown {
  // What every object has by itself is lost on the way through it, and nothing that was asked for may be lost silently.
  if (key === '__proto__' || key === 'constructor') throw new Problem('invalid_json', `a field cannot be named ${key}`);
  return value;
}

/** For routes that take none: what a body would ask for there must not be ignored. @throws Problem `invalid_request` */
export function assertNoBody(body: unknown): void {
  if (body === undefined || body === null) return;
  const fields = typeof body === 'object' ? Object.keys(body) : [''];
  if (fields.length === 0) return;
  const errors = fields.map((field) => ({ field, code: 'unknown_field', message: 'this route takes no body' }));
  throw new Problem('invalid_request', 'this route takes no body', { errors });
}
