/** Files of a container, as the tar archives that the daemon takes and gives. */
import type { Readable } from 'node:stream';
import type Dockerode from 'dockerode';
import { DaemonError } from './errors.ts';

export interface ContainerFile {
  /** Without a folder. */
  readonly name: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly content: string;
}

export interface FileFound {
  /** As the archive has it: of a folder's files, with the folder's own name before it. */
  readonly name: string;
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly content: Buffer;
  /** Of a symbolic link: as the daemon resolves it, within the container. */
  readonly target: string | undefined;
}

export async function packFiles(files: readonly ContainerFile[]): Promise<Buffer> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  for (const { name, mode, uid, gid, content } of files)
    archive.entry({ name, mode, uid, gid, type: 'file', ...largeIds(uid, gid) }, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What the six octal digits hold that tar-stream writes; it puts the largest of them where an id is larger. */
const HEADER_ID_MAX = 0o777777;

/** Cluster platforms hand out such ids. They go where POSIX has them go (pax, "Extended Header"). */
function largeIds(uid: number, gid: number): { readonly pax?: Readonly<Record<string, string>> } {
  return Math.max(uid, gid) > HEADER_ID_MAX ? { pax: { uid: String(uid), gid: String(gid) } } : {};
}

/** docker-modem, which dockerode has no types for. */
interface Modem {
  dial(request: object, answered: (error: Error | null) => void): void;
}

/** dockerode's own call names a content type that the daemon does not take. */
export function putArchive(
  client: Dockerode,
  containerId: string,
  folder: string,
  archive: Buffer,
  abortSignal: AbortSignal,
): Promise<void> {
  const request = {
    path: `/containers/${containerId}/archive?`,
    method: 'PUT',
    file: archive,
    headers: { 'Content-Type': 'application/x-tar' },
    abortSignal,
    statusCodes: { 200: true, 400: 'bad parameter', 403: 'read-only', 404: 'no such path', 500: 'server error' },
    options: { path: folder },
  };
  return new Promise((resolve, reject) => {
    (client.modem as Modem).dial(request, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}

/**
 * Nothing of it is written anywhere. Archives come out of images that anybody may have made, hence the bound.
 * @throws DaemonError
 */
export async function unpackFiles(stream: Readable, maxBytes: number): Promise<readonly FileFound[]> {
  const archive = await readAll(stream, maxBytes);
  const { extract } = await import('tar-stream');
  const reading = extract();
  reading.end(archive);
  const files: FileFound[] = [];
  try {
    for await (const entry of reading) {
      const { name, type, mode, linkname, ...ids } = entry.header;
      const extended = (entry.header.pax ?? {}) as { readonly uid?: string; readonly gid?: string };
      const [uid, gid] = [Number(extended.uid ?? ids.uid), Number(extended.gid ?? ids.gid)];
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      const known = type === 'file' || type === 'directory' || type === 'symlink' ? type : 'other';
      files.push({ name, type: known, mode, uid, gid, content: Buffer.concat(chunks), target: linkname ?? undefined });
    }
  } catch (cause) {
    throw new DaemonError('lost', 'the Docker daemon sent an archive that cannot be read', { cause });
  }
  return files;
}

async function readAll(stream: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > maxBytes) throw new DaemonError('failed', `the archive has more than ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks);
}
