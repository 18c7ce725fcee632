import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { NodeChild } from '#testing';
import { nodeChild, sourceUrl, waitUntil } from '#testing';
import type { HostLock } from './host-lock.ts';
import { HostLockRefused, lockHolders, takeHostLock } from './host-lock.ts';

/** Each test starts processes, on a machine that may be busy. */
const TIME_LIMIT_MS = 20_000;

let installation: string;
let runtimeFolder: string;
const taken: HostLock[] = [];
const children: NodeChild[] = [];
const leftovers: string[] = [];
beforeEach(() => {
  installation = randomUUID();
  runtimeFolder = mkdtempSync(join(tmpdir(), 'lock-'));
});
afterEach(async () => {
  for (const started of children.splice(0)) {
    started.process.kill('SIGKILL');
    await started.ended;
  }
  for (const { descriptor, path } of taken.splice(0)) {
    closeSync(descriptor);
    rmSync(path, { force: true });
  }
  for (const path of leftovers.splice(0)) rmSync(path, { force: true });
  rmSync(runtimeFolder, { recursive: true });
});

async function take(waitSeconds: number): Promise<HostLock> {
  const lock = await takeHostLock(installation, 'local', runtimeFolder, waitSeconds);
  taken.push(lock);
  return lock;
}

const MODULE = `import { takeHostLock, lockHolders } from ${JSON.stringify(sourceUrl('libs/fencing/src/host-lock.ts'))};`;

function child(source: string, options: Parameters<typeof nodeChild>[1] = {}): NodeChild {
  const started = nodeChild(`${MODULE} ${source}`, options);
  children.push(started);
  return started;
}

/** A worker that holds the lock until it is killed. @returns with the lock file's path */
async function holder(then = ''): Promise<{ readonly child: NodeChild; readonly path: string }> {
  const worker = child(`
    const lock = await takeHostLock(${JSON.stringify(installation)}, 'local', ${JSON.stringify(runtimeFolder)}, 0);
    console.log(lock.path);
    ${then}
    setInterval(() => undefined, 1000);`);
  const path = await waitUntil('the worker has the lock', () => worker.lines[0]);
  leftovers.push(path);
  return { child: worker, path };
}

async function kill(worker: NodeChild): Promise<void> {
  worker.process.kill('SIGKILL');
  await worker.ended;
}

const refusal = async (work: Promise<unknown>): Promise<HostLockRefused> => {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HostLockRefused);
  return error as HostLockRefused;
};

describe('the host lock (invariant 2)', () => {
  test(
    'a second worker does not get it, and is told by which process it is held',
    async () => {
      const { child: worker, path } = await holder();
      const { code, message } = await refusal(take(0));
      expect(code).toBe('lock_busy');
      expect(message).toContain(path);
      expect(message).toContain(`pid ${worker.process.pid} (${process.execPath} `);
      await kill(worker);
      expect((await take(1)).path).toBe(path);
    },
    TIME_LIMIT_MS,
  );

  test(
    'B099 B101: after kill -9 of its holder it is free at once, whatever process ids somebody wrote into the file',
    async () => {
      const { child: worker, path } = await holder();
      writeFileSync(path, `1\n${process.pid}\n${worker.process.pid}\n`);
      await kill(worker);
      expect((await take(1)).path).toBe(path);
      expect(lockHolders(path)).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  test(
    'B099: a process that inherited it still holds it when its parent is killed, and is the one that is named',
    async () => {
      const { child: worker, path } = await holder(`
        const { spawn } = await import('node:child_process');
        const runner = spawn('sleep', ['1000'], { stdio: ['ignore', 'ignore', 'ignore', lock.descriptor], detached: true });
        console.log(runner.pid);`);
      const runner = Number(await waitUntil('the runner has started', () => worker.lines[1]));
      try {
        await kill(worker);
        const { code, message } = await refusal(take(0));
        expect(code).toBe('lock_busy');
        expect(message).toContain(`pid ${runner} (sleep 1000)`);
        expect(message).not.toContain(`pid ${worker.process.pid} `);
      } finally {
        process.kill(runner, 'SIGKILL');
      }
      expect((await take(1)).path).toBe(path);
    },
    TIME_LIMIT_MS,
  );

  test(
    'a process that was started without the descriptor does not hold it',
    async () => {
      const { child: worker, path } = await holder(`
        const { spawn } = await import('node:child_process');
        console.log(spawn('sleep', ['1000'], { stdio: 'ignore', detached: true }).pid);`);
      const other = Number(await waitUntil('the other process has started', () => worker.lines[1]));
      try {
        await kill(worker);
        expect((await take(1)).path).toBe(path);
      } finally {
        process.kill(other, 'SIGKILL');
      }
    },
    TIME_LIMIT_MS,
  );

  test(
    'a successor that waits gets it as soon as the holder is gone',
    async () => {
      const { child: worker, path } = await holder();
      const waiting = take(15);
      await waitUntil('the successor waits', () =>
        lockHolders(path).some(({ command }) => command.startsWith('flock')),
      );
      await kill(worker);
      expect((await waiting).path).toBe(path);
    },
    TIME_LIMIT_MS,
  );

  test(
    'a successor waits for as long as it was told, and no longer',
    async () => {
      await holder();
      const before = performance.now();
      expect((await refusal(take(1))).code).toBe('lock_busy');
      expect(performance.now() - before).toBeGreaterThan(950);
    },
    TIME_LIMIT_MS,
  );

  test(
    'of workers that start together exactly one gets it',
    async () => {
      const source = `
        try {
          const lock = await takeHostLock(${JSON.stringify(installation)}, 'local', ${JSON.stringify(runtimeFolder)}, 0);
          console.log('taken ' + lock.path);
          setInterval(() => undefined, 1000);
        } catch (error) { console.log(error.code); }`;
      const workers = Array.from({ length: 4 }, () => child(source));
      await waitUntil('all have an answer', () => workers.every(({ lines }) => lines.length === 1));
      const answers = workers.map(({ lines }) => lines[0] ?? '').sort();
      leftovers.push((answers.at(-1) ?? '').slice('taken '.length));
      expect(answers.map((answer) => answer.split(' ')[0])).toEqual(['lock_busy', 'lock_busy', 'lock_busy', 'taken']);
    },
    TIME_LIMIT_MS,
  );

  test('other installations and other hosts have locks of their own', async () => {
    const one = await take(0);
    const others = await Promise.all([
      takeHostLock(installation, 'other', runtimeFolder, 0),
      takeHostLock(randomUUID(), 'local', runtimeFolder, 0),
    ]);
    taken.push(...others);
    expect(new Set([one, ...others].map(({ path }) => path)).size).toBe(3);
  });

  test('it is kept from one taking to the next: the file stays, and nothing is written into it', async () => {
    const { path, descriptor } = await take(0);
    closeSync(descriptor);
    taken.pop();
    expect(readFileSync(path, 'utf8')).toBe('');
    expect((await take(0)).path).toBe(path);
  });

  test.each([
    ['replaced by another file', true],
    ['removed', false],
  ])(
    'a lock file that is %s while a worker waits for it is refused: two workers could hold two locks',
    async (_what, replaced) => {
      const { child: worker, path } = await holder();
      const waiting = refusal(take(15));
      await waitUntil('the successor waits', () =>
        lockHolders(path).some(({ command }) => command.startsWith('flock')),
      );
      rmSync(path);
      if (replaced) closeSync(openSync(path, 'wx'));
      await kill(worker);
      const { code, message } = await waiting;
      expect(code).toBe('lock_folder');
      expect(message).toContain('was replaced');
    },
    TIME_LIMIT_MS,
  );
});

describe('the folder of the lock', () => {
  test.each<readonly [string, (path: string) => void]>([
    ['a link', (path) => symlinkSync('/dev/null', path)],
    ['a folder', (path) => mkdirSync(path)],
  ])(
    'a lock file that is there and cannot be opened (%s) is refused: the next folder would be a second lock',
    async (_what, put) => {
      const { path } = await take(0);
      rmSync(path);
      put(path);
      try {
        const { code, message } = await refusal(take(0));
        expect(code).toBe('lock_folder');
        expect(message).toContain(`the lock file ${path} is there and cannot be used`);
      } finally {
        rmSync(path, { recursive: true });
      }
    },
  );

  /** Makes the kernel's answer about a file system another one, in a process of its own. */
  const onFileSystem = (types: readonly number[]): string => `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const types = ${JSON.stringify(types)};
    fs.statfsSync = () => ({ type: types.shift() });
    syncBuiltinESMExports();`;

  async function answersOn(types: readonly number[], statements: string): Promise<readonly string[]> {
    const asking = child(statements, { preload: onFileSystem(types) });
    const { errors } = await asking.ended;
    expect(errors).toBe('');
    return asking.lines;
  }

  /** linux/magic.h; where the highest bit is set, also as the kernel's signed number. */
  const NETWORK: readonly (readonly [string, number])[] = [
    ['NFS', 0x6969],
    ['CIFS', 0xff534d42],
    ['CIFS', 0xff534d42 | 0],
    ['SMB2', 0xfe534d42],
    ['SMB2', 0xfe534d42 | 0],
    ['SMB', 0x517b],
    ['9P', 0x01021997],
    ['FUSE', 0x65735546],
    ['Ceph', 0x00c36400],
    ['AFS', 0x5346414f],
    ['Coda', 0x73757245],
    ['Lustre', 0x0bd00bd0],
    ['GFS2', 0x01161970],
    ['OCFS2', 0x7461636f],
  ];
  const LOCAL: readonly (readonly [string, number])[] = [
    ['ext4', 0xef53],
    ['XFS', 0x58465342],
    ['Btrfs', 0x9123683e],
    ['tmpfs', 0x01021994],
    ['overlay', 0x794c7630],
    ['ZFS', 0x2fc12fc1],
    ['F2FS', 0xf2f52010],
  ];

  test(
    'B102: every network file system is refused by its name, and no local one is',
    async () => {
      const all = [...NETWORK, ...LOCAL];
      const answers = await answersOn(
        all.map(([, type]) => type),
        `import { assertLocalFileSystem } from ${JSON.stringify(sourceUrl('libs/fencing/src/host-lock.ts'))};
         for (let left = ${all.length}; left > 0; left -= 1)
           try { assertLocalFileSystem('/some/where'); console.log('local'); }
           catch (error) { console.log(error.code + ' ' + error.message); }`,
      );
      expect(answers).toEqual([
        ...NETWORK.map(
          ([name]) => `lock_folder /some/where is on a network file system (${name}); put it on a local disk`,
        ),
        ...LOCAL.map(() => 'local'),
      ]);
    },
    TIME_LIMIT_MS,
  );

  test(
    'B102: where every folder is on a network file system no lock is taken, and it is said what to do',
    async () => {
      const [answer] = await answersOn(
        [0x6969, 0x6969],
        `try { await takeHostLock(${JSON.stringify(installation)}, 'local', ${JSON.stringify(runtimeFolder)}, 0); console.log('taken'); }
         catch (error) { console.log(error.code + ' ' + error.message); }`,
      );
      expect(answer).toMatch(/^lock_folder no folder can hold the host lock/);
      expect(answer).toContain('NFS');
      expect(answer).toContain('set XDG_RUNTIME_DIR to a private local folder');
    },
    TIME_LIMIT_MS,
  );
});
