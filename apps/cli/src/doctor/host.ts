/** What can be seen on this host: files, processes, the lock. Nothing is changed, and no lock is taken. */
import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RecordFolders, UnreadableRecord } from '#receipts';
import { checkPrivateFolder, hostLockFiles, readPrivateFile, readSealingKey, type Settings } from '#settings';
import { failed, ok, reasonOf, warning, type Finding } from './finding.ts';

export function checkFiles({ paths }: Settings): Finding {
  const faults: string[] = [];
  const look = (check: () => unknown): void => {
    try {
      check();
    } catch (error) {
      faults.push(reasonOf(error));
    }
  };
  for (const folder of [paths.run, paths.log, paths.host, paths.receipts, paths.witnesses, paths.fences, paths.engines])
    look(() => checkPrivateFolder(folder));
  look(() => readSealingKey(paths.key));
  look(() => readPrivateFile(paths.caKeyFile));
  look(() => readPrivateFile(paths.epoch));
  look(() => readFileSync(paths.caFile));
  if (faults.length > 0) return failed('files', faults.join('; '));
  return ok('files', `state in ${paths.home}, closed to others`);
}

const PROCESSES = ['gateway', 'worker', 'reconciler'] as const;

export function checkProcesses({ paths }: Settings): Finding {
  const gone = PROCESSES.filter((name) => !isAlive(name, pidOf(join(paths.run, `${name}.pid`))));
  if (gone.length > 0) return failed('processes', `${gone.join(', ')} not running: run npm start`);
  const notReady = (['worker', 'reconciler'] as const).filter((name) => !existsSync(join(paths.run, `${name}.ready`)));
  if (notReady.length > 0)
    return warning('processes', `${notReady.join(', ')} not ready yet; its log says why: ${paths.log}`);
  return ok('processes', `${PROCESSES.join(', ')} run`);
}

function pidOf(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Numbers are used again: the program counts too. */
function isAlive(name: string, pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`/apps/${name}/`);
  } catch {
    return false;
  }
}

/** A pass that has not ended for so long hangs, whatever the process answers. */
const PASS_OVERDUE_MS = 30_000;

export function checkPasses({ paths }: Settings): Finding {
  const file = join(paths.run, 'reconciler.passes');
  // It takes the file along when it ends, and writes it when its first pass has ended.
  if (!existsSync(file)) return failed('passes', 'none has run: the reconciler is not running, or began just now');
  const { passes } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly passes: readonly { readonly pass: string; readonly endedAt: string; readonly outcome: string }[];
  };
  const overdue = passes.filter(({ endedAt }) => Date.now() - Date.parse(endedAt) > PASS_OVERDUE_MS);
  if (overdue.length > 0)
    return failed('passes', overdue.map(({ pass, endedAt }) => `${pass} last ended at ${endedAt}`).join('; '));
  const failing = passes.filter(({ outcome }) => outcome !== 'done').map(({ pass }) => pass);
  if (failing.length > 0)
    return warning('passes', `${failing.join(', ')} fails: see ${join(paths.log, 'reconciler.log')}`);
  return ok('passes', passes.map(({ pass }) => pass).join(', '));
}

export function checkLock({ installation, hostId }: Settings, env: NodeJS.ProcessEnv): Finding {
  const files = hostLockFiles(installation, hostId, env['XDG_RUNTIME_DIR']).filter((path) => existsSync(path));
  const held = files.find(isLocked);
  if (held !== undefined) return ok('lock', `${held} is held`);
  return failed('lock', `no worker holds the lock of host ${hostId}: run npm start`);
}

/** proc(5), "/proc/locks": `… FLOCK ADVISORY WRITE pid major:minor:inode …`. */
function isLocked(path: string): boolean {
  const { ino } = statSync(path);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .some((line) => line.includes(' FLOCK ') && line.includes(`:${ino} `));
}

const FREE_LOW_BYTES = 2 * 1024 ** 3;
const FREE_NONE_BYTES = 200 * 1024 ** 2;

export function checkDisk({ home }: Settings): Finding {
  const { bavail, bsize, ffree, files } = statfsSync(home);
  const free = bavail * bsize;
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB free under ${home}`;
  if (free < FREE_NONE_BYTES || (files > 0 && ffree === 0)) return failed('disk', `${text}: nothing can be recorded`);
  return free < FREE_LOW_BYTES ? warning('disk', text) : ok('disk', text);
}

/** A worker that runs settles what it has in hand within minutes. */
const RECEIPT_OLD_MS = 25 * 60_000;

export function checkReceipts({ paths }: Settings): Finding {
  const ages = readReceiptAges(paths);
  if (typeof ages === 'string')
    return failed('receipts', `${ages}; the host takes no work. Never remove it: put the same file back from a copy`);
  if (ages.length === 0) return ok('receipts', 'none is open');
  const oldest = Math.min(...ages);
  if (Date.now() - oldest > RECEIPT_OLD_MS)
    return warning(
      'receipts',
      `${ages.length} open, the oldest since ${new Date(oldest).toISOString()}; see: surefoot case list`,
    );
  return ok('receipts', `${ages.length} open: an effect is under way`);
}

const READS_MAX = 5;

/** @returns when each was written, in milliseconds; or what is wrong with one of them, naming its file */
function readReceiptAges(paths: Settings['paths']): readonly number[] | string {
  const records = new RecordFolders(paths);
  for (let reads = 1; ; reads += 1) {
    try {
      const receipts = records.readReceipts();
      for (const { effectId } of receipts) records.readWitness(effectId);
      return receipts.flatMap(
        ({ effectId }) => statSync(join(paths.receipts, `${effectId}.json`), { throwIfNoEntry: false })?.mtimeMs ?? [],
      );
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      // A worker that runs consumes them while we read.
      if (reads === READS_MAX || existsSync(error.path)) return error.message;
    }
  }
}
