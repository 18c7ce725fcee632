import { join } from 'node:path';

/**
 * Where the host's lock is, in the order in which a worker tries them (DESIGN §4): fixed by installation and host, and not
 * in the state folder, which can be copied or moved.
 * @param runtimeFolder XDG_RUNTIME_DIR
 */
export function hostLockFiles(
  installation: string,
  hostId: string,
  runtimeFolder: string | undefined,
): readonly string[] {
  const folders = ['/run/lock', ...(runtimeFolder === undefined || runtimeFolder === '' ? [] : [runtimeFolder])];
  return folders.map((folder) => join(folder, 'surefoot', `${installation}.${hostId}.lock`));
}
