/** What the queue carries for an operation: an id and a schema version, nothing to act on (DESIGN §1, "job"). */
import { isUuid } from '#kernel';

export interface JobMessage {
  readonly jobId: string;
}

const VERSION = 1;
const BYTES_MAX = 1_024;

/** @returns the reason, without content, when it is not exactly such a message */
export function parseJobMessage(content: Buffer): JobMessage | { readonly fault: string } {
  if (content.length > BYTES_MAX) return { fault: `${content.length} bytes are too many` };
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    return { fault: 'not JSON in UTF-8' };
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return { fault: 'not a JSON object' };
  const { version, jobId, ...more } = parsed as Readonly<Record<string, unknown>>;
  if (version !== VERSION) return { fault: 'another version' };
  if (typeof jobId !== 'string' || !isUuid(jobId)) return { fault: 'jobId is not a UUID' };
  if (Object.keys(more).length > 0) return { fault: 'members that do not belong there' };
  return { jobId };
}
