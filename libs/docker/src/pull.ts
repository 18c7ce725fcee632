import { DaemonError } from './errors.ts';

/**
 * Reads the progress of a pull to its end. The status of the answer says nothing, since it is sent before the work begins:
 * an error stands in the stream, and a stream that just ends has not said that it is done.
 * @throws DaemonError
 */
export async function followPull(stream: NodeJS.ReadableStream): Promise<void> {
  let rest = '';
  let lastStatus = '';
  for await (const chunk of stream) {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) lastStatus = readProgress(line) ?? lastStatus;
  }
  lastStatus = readProgress(rest) ?? lastStatus;
  // The last line names the result ("Status: Downloaded newer image …", "Status: Image is up to date …").
  if (!lastStatus.startsWith('Status:'))
    throw new DaemonError('lost', `the pull ended without a result, last: ${lastStatus}`);
}

function readProgress(line: string): string | undefined {
  if (line.trim() === '') return undefined;
  const progress = JSON.parse(line) as { error?: string; status?: string };
  if (progress.error !== undefined) throw new DaemonError('failed', `the image could not be pulled: ${progress.error}`);
  return progress.status;
}
