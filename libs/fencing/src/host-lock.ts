/**
 * One worker per host and installation (invariant 2): a kernel lock on a file at one fixed path. The lock belongs to the
 * open file description, so guardian and runner, which inherit the descriptor, hold it too: a successor gets it only when
 * the last process that could still act is gone. It is not judged by process ids, times or file contents.
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { hostLockFiles } from '#settings';

export class HostLockRefused extends Error {
  readonly code: 'lock_busy' | 'lock_folder';
  constructor(code: 'lock_busy' | 'lock_folder', message: string) {
    super(message);
    this.name = 'HostLockRefused';
    this.code = code;
  }
}

/** `statfs` types (linux/magic.h) on which flock hangs, is local to one machine, or is not kept. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x517b: 'SMB',
  0x01021997: '9P',
  0x65735546: 'FUSE',
  0x00c36400: 'Ceph',
  0x5346414f: 'AFS',
  0x73757245: 'Coda',
  0x0bd00bd0: 'Lustre',
  0x01161970: 'GFS2',
  0x7461636f: 'OCFS2',
};

/** Refuses a folder on a network file system, naming it (FIELD-CASES B102). */
export function assertLocalFileSystem(folder: string): void {
  const name = NETWORK_FILE_SYSTEMS[statfsSync(folder).type >>> 0];
  if (name !== undefined)
    throw new HostLockRefused('lock_folder', `${folder} is on a network file system (${name}); put it on a local disk`);
}

export interface HostLock {
  readonly path: string;
  /** To be handed to guardian and runner in their `stdio`; never closed while this process lives. */
  readonly descriptor: number;
}

/**
 * Takes the host's lock and keeps it until the process, and every one that inherited the descriptor, has ended.
 * @param waitSeconds how long the processes of a worker that was just killed may take to go
 * @throws HostLockRefused naming who holds it
 */
export async function takeHostLock(
  installation: string,
  hostId: string,
  runtimeFolder: string | undefined,
  waitSeconds: number,
): Promise<HostLock> {
  const lock = openLockFile(hostLockFiles(installation, hostId, runtimeFolder));
  // flock(1) locks the open file description it is given and exits; the lock stays with our descriptor.
  const helper = spawn('flock', ['--wait', String(waitSeconds), '3'], {
    stdio: ['ignore', 'ignore', 'ignore', lock.descriptor],
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    helper.once('error', reject);
    helper.once('exit', resolve);
  });
  if (code !== 0)
    throw new HostLockRefused(
      'lock_busy',
      `another worker acts on this host: ${lock.path} is held by ${describe(lockHolders(lock.path))}`,
    );
  // A file that was replaced between open and lock would be another lock than the one a later worker opens.
  if (fstatSync(lock.descriptor).ino !== statSync(lock.path, { throwIfNoEntry: false })?.ino)
    throw new HostLockRefused(
      'lock_folder',
      `${lock.path} was replaced while it was being locked; lock files are never removed`,
    );
  return lock;
}

/**
 * In the first folder that can be used. A lock file that is there and cannot be opened may be held by another user's worker
 * of this very installation: the next folder would be a second lock, so it is refused.
 */
function openLockFile(paths: readonly string[]): HostLock {
  const failures: string[] = [];
  for (const path of paths) {
    try {
      prepareFolder(dirname(path));
      return { path, descriptor: openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600) };
    } catch (error) {
      const message = error instanceof Error ? error.message : path;
      if (lstatSync(path, { throwIfNoEntry: false }) !== undefined)
        throw new HostLockRefused('lock_folder', `the lock file ${path} is there and cannot be used: ${message}`);
      failures.push(message);
    }
  }
  throw new HostLockRefused(
    'lock_folder',
    `no folder can hold the host lock (${failures.join('; ')}); set XDG_RUNTIME_DIR to a private local folder`,
  );
}

function prepareFolder(folder: string): void {
  // Shared like /tmp is: whoever comes first must not shut out another user's installation, whose lock has its own name.
  if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o1777);
  // But the folder's owner can remove any file in it, and a lock file that is removed lets a second worker in.
  if (![0, process.geteuid?.()].includes(statSync(folder).uid)) throw new Error(`${folder} belongs to another user`);
  assertLocalFileSystem(folder);
}

interface LockHolder {
  readonly pid: number;
  readonly command: string;
}

/** Processes that have the lock file open, by device and inode: `/proc/locks` may name a helper that is gone. */
export function lockHolders(path: string): readonly LockHolder[] {
  const { dev, ino } = statSync(path);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => hasOpen(`/proc/${pid}/fd`, dev, ino))
    .map((pid) => ({ pid: Number(pid), command: commandOf(pid) }));
}

function hasOpen(folder: string, dev: number, ino: number): boolean {
  try {
    return readdirSync(folder).some((descriptor) => {
      try {
        const found = statSync(join(folder, descriptor));
        return found.ino === ino && found.dev === dev;
      } catch {
        return false;
      }
    });
  } catch {
    // Gone meanwhile, or another user's.
    return false;
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return 'a process that has ended';
  }
}

function describe(holders: readonly LockHolder[]): string {
  return holders.length === 0
    ? 'a process that cannot be seen from here'
    : holders.map(({ pid, command }) => `pid ${pid} (${command})`).join(', ');
}
