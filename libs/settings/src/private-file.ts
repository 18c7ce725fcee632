/**
 * Files and folders that only their owner may touch (DESIGN §10). What is checked is what is read: the descriptor that was
 * opened, not the name, which could point elsewhere a moment later.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs';

/** A file or folder of the state folder is missing, or is not safe to use. The message says what to do. */
export class UnsafeState extends Error {
  constructor(path: string, why: string, next: string, options?: { cause?: unknown }) {
    super(`${path} ${why}: ${next}`, options);
    this.name = 'UnsafeState';
  }
}

/** @throws UnsafeState when the file is missing, a link, somebody else's, or readable by others. */
export function readPrivateFile(path: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    throw cannotOpen(path, error);
  }
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new UnsafeState(path, 'is not a file', 'move it away');
    refuseOthers(path, found, '600');
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** @throws UnsafeState when the folder is missing, a link, somebody else's, or open to others. */
export function checkPrivateFolder(path: string): void {
  let found: Stats;
  try {
    found = lstatSync(path);
  } catch (error) {
    throw cannotOpen(path, error);
  }
  if (found.isSymbolicLink()) throw new UnsafeState(path, 'is a symbolic link', 'name the real folder');
  if (!found.isDirectory()) throw new UnsafeState(path, 'is not a folder', 'move it away');
  refuseOthers(path, found, '700');
}

function refuseOthers(path: string, found: Stats, mode: string): void {
  const user = process.geteuid?.();
  if (user !== undefined && found.uid !== user)
    throw new UnsafeState(path, `belongs to user ${found.uid}`, 'run this as that user');
  if ((found.mode & 0o077) !== 0)
    throw new UnsafeState(path, 'is open to other users', `run "chmod ${mode} ${path}", and consider its keys known`);
}

function cannotOpen(path: string, cause: unknown): UnsafeState {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return new UnsafeState(path, 'is missing', 'run "npm start" first', { cause });
  if (code === 'ELOOP') return new UnsafeState(path, 'is a symbolic link', 'put the real file in its place', { cause });
  return new UnsafeState(path, `cannot be read (${code ?? 'unknown error'})`, 'check its owner and mode', { cause });
}
