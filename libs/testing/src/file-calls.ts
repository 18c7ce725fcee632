/**
 * A module to be loaded before others (`nodeChild`'s `preload`): it stands between a program and `node:fs`, writes down the
 * calls that change files, and can make the n-th of them fail, or kill the process before or after it.
 */

/** What becomes of one call, counted from 1 over all calls that touch files in `folder`. */
export interface CallFault {
  readonly nth: number;
  readonly does: 'kill-before' | 'kill-after' | 'fail';
  /** For `fail`: errno name, such as ENOSPC. */
  readonly code?: string;
}

/** Bytes that one write takes at most: a full disk and a signal both make writes short. */
export const SHORT_WRITE_BYTES = 300;

/**
 * The program may set the fault anew while it runs, with `setFileFault(fault)`, and then counts from 1 again.
 *
 * Prints each call as a line `call NAME WHAT`, where WHAT is the file's name, and that of its folder.
 * @param folder only calls about files in it count
 */
export function watchedFileCalls(folder: string, fault?: CallFault): string {
  return `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const folder = ${JSON.stringify(folder)};
    let fault = ${JSON.stringify(fault ?? null)};
    const real = { ...fs };
    const paths = new Map();
    let calls = 0;
    globalThis.setFileFault = (next) => {
      fault = next;
      calls = 0;
    };
    const say = (line) => real.writeSync(1, line + '\\n');
    const told = (path) => (path === folder ? '.' : path.slice(folder.length + 1));
    const watch = (name, pathOf) => {
      fs[name] = (...args) => {
        const path = pathOf(args);
        if (typeof path !== 'string' || !path.startsWith(folder)) return real[name](...args);
        calls += 1;
        const hit = fault !== null && fault.nth === calls;
        say('call ' + name + ' ' + told(path));
        if (hit && fault.does === 'kill-before') process.kill(process.pid, 'SIGKILL');
        if (hit && fault.does === 'fail') {
          // A file descriptor is gone even when closing it reports an error.
          if (name === 'closeSync') real.closeSync(args[0]);
          throw Object.assign(new Error(fault.code + ': injected'), { code: fault.code, syscall: name });
        }
        const short = name === 'writeSync' && args[1] instanceof Uint8Array;
        const answer = short ? real.writeSync(args[0], args[1], args[2] ?? 0, Math.min(${SHORT_WRITE_BYTES}, args[1].length - (args[2] ?? 0))) : real[name](...args);
        if (name === 'openSync') paths.set(answer, path);
        if (hit && fault.does === 'kill-after') process.kill(process.pid, 'SIGKILL');
        return answer;
      };
    };
    const byPath = (args) => String(args[0]);
    const byDescriptor = (args) => paths.get(args[0]);
    watch('openSync', byPath);
    watch('linkSync', (args) => String(args[1]));
    watch('renameSync', (args) => String(args[1]));
    watch('unlinkSync', byPath);
    watch('writeSync', byDescriptor);
    watch('fsyncSync', byDescriptor);
    watch('closeSync', byDescriptor);
    syncBuiltinESMExports();
  `;
}
