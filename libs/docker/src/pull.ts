import { DaemonError } from './errors.ts';

export interface RegistryCredentials {
  readonly username: string;
  readonly password: string;
}

/** Bytes of the layers that the daemon has told of so far: the total grows until it has begun the last one. */
export interface PullProgress {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface PullRequest {
  readonly deadlineMs: number;
  /** For the registry that the reference names. */
  readonly credentials?: RegistryCredentials;
  /** With every line that tells of bytes, many times per second. */
  readonly onProgress?: (progress: PullProgress) => void;
}

interface Line {
  readonly error?: string;
  readonly status?: string;
  /** Of a layer. */
  readonly id?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** What a layer says once it has nothing more to fetch. */
const FETCHED: ReadonlySet<string | undefined> = new Set(['Download complete', 'Extracting', 'Pull complete']);

/**
 * Reads the progress of a pull to its end. The status of the answer says nothing, since it is sent before the work begins:
 * an error stands in the stream, and a stream that just ends has not said that it is done.
 * @throws DaemonError
 */
export async function followPull(stream: NodeJS.ReadableStream, onProgress?: PullRequest['onProgress']): Promise<void> {
  const layers = new Layers();
  let rest = '';
  let lastStatus = '';
  const read = (text: string): void => {
    if (text.trim() === '') return;
    const line = JSON.parse(text) as Line;
    if (line.error !== undefined) throw new DaemonError('failed', `the image could not be pulled: ${line.error}`);
    lastStatus = line.status ?? lastStatus;
    const progress = layers.after(line);
    if (progress !== undefined) onProgress?.(progress);
  };
  for await (const chunk of stream) {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(read);
  }
  read(rest);
  // The last line names the result ("Status: Downloaded newer image …", "Status: Image is up to date …").
  if (!lastStatus.startsWith('Status:'))
    throw new DaemonError('lost', `the pull ended without a result, last: ${lastStatus}`);
}

class Layers {
  readonly #layers = new Map<string, PullProgress>();

  /** @returns the bytes of all layers, where this line has told something about them */
  after({ id, status, progressDetail: { current, total } = {} }: Line): PullProgress | undefined {
    if (id === undefined) return undefined;
    const before = this.#layers.get(id);
    // While a layer is unpacked, its numbers are about that, and begin at nought again.
    if (FETCHED.has(status)) {
      if (before === undefined) return undefined;
      this.#layers.set(id, { ...before, doneBytes: before.totalBytes });
    } else if (status === 'Downloading' && current !== undefined && total !== undefined && total > 0)
      this.#layers.set(id, { doneBytes: Math.min(current, total), totalBytes: total });
    else return undefined;
    const all = [...this.#layers.values()];
    return {
      doneBytes: all.reduce((sum, layer) => sum + layer.doneBytes, 0),
      totalBytes: all.reduce((sum, layer) => sum + layer.totalBytes, 0),
    };
  }
}
