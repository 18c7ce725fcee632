/** A kernel lock on a file, for as long as `work` takes. It ends with this process, however that ends. */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';

export class FileLockBusy extends Error {
  constructor(path: string) {
    super(`${path} is locked by another process`);
    this.name = 'FileLockBusy';
  }
}

/**
 * Node has no flock; flock(1) locks the open file description it is given and exits, and the lock stays with ours.
 * @throws FileLockBusy when it is not free within `waitMs`
 */
export async function withFileLock<T>(path: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const helper = spawn('flock', ['--wait', String(waitMs / 1_000), '3'], {
      stdio: ['ignore', 'ignore', 'ignore', descriptor],
    });
    const code = await new Promise<number | null>((resolve, reject) => {
      helper.once('error', reject);
      helper.once('exit', resolve);
    });
    if (code !== 0) throw new FileLockBusy(path);
    return await work();
  } finally {
    closeSync(descriptor);
  }
}
