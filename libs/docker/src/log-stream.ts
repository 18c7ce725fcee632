import type { Readable } from 'node:stream';
import type { LogLine, LogQuery } from '#kernel';
import type Dockerode from 'dockerode';
import { classifyDaemonError } from './errors.ts';
import { logParser } from './log-parser.ts';

/** docker-modem, which dockerode has no types for. */
interface Modem {
  dial(request: object, answered: (error: Error | null, stream: Readable) => void): void;
}

/** dockerode's own call reads what is not followed to its end, as text, and takes it for JSON where it can. */
export function openLog(
  client: Dockerode,
  id: string,
  { tail, since, follow }: LogQuery,
  abortSignal: AbortSignal,
): Promise<Readable> {
  const from = since === undefined ? {} : { since: unixTime(since) };
  const request = {
    path: `/containers/${id}/logs?`,
    method: 'GET',
    abortSignal,
    isStream: true,
    statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
    options: { stdout: true, stderr: true, timestamps: true, follow, tail, ...from },
  };
  return new Promise((resolve, reject) => {
    (client.modem as Modem).dial(request, (error, stream) => {
      if (error === null) resolve(stream);
      else reject(error);
    });
  });
}

/** @throws DaemonError */
export async function* readLog(stream: Readable, terminal: boolean): AsyncGenerator<readonly LogLine[]> {
  const parser = logParser(terminal);
  try {
    for await (const chunk of stream) {
      const lines = parser.push(chunk as Buffer);
      if (lines.length > 0) yield lines;
    }
  } catch (error) {
    throw classifyDaemonError(error);
  }
  yield parser.end();
}

/** Seconds and nanoseconds, as the daemon wants them: it reads no others exactly. */
function unixTime(rfc3339: string): string {
  const fraction = /\.(\d{1,9})/.exec(rfc3339)?.[1] ?? '';
  const seconds = Math.floor(Date.parse(rfc3339.replace(/\.\d+/, '')) / 1_000);
  return `${seconds}.${fraction.padEnd(9, '0')}`;
}
