/** A Node process of the test's own that runs production sources, so that it can be killed, and its system calls be counted. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The address by which such a process imports a source of ours. */
export function sourceUrl(path: string): string {
  return new URL(`../../../${path}`, import.meta.url).href;
}

export interface NodeChild {
  readonly process: ChildProcess;
  /** Lines of standard output so far, whole ones. */
  readonly lines: readonly string[];
  /** Resolves at its end. */
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly errors: string;
  }>;
}

/**
 * @param source an ES module in plain JavaScript
 * @param options `under`: a program and its arguments that start it, such as a shell with a limit; `preload`: a module that
 *   runs before it
 */
export function nodeChild(
  source: string,
  options: {
    readonly under?: readonly [string, ...string[]];
    readonly preload?: string;
  } = {},
): NodeChild {
  const preload = options.preload === undefined ? [] : ['--import', dataUrl(options.preload)];
  const node = [process.execPath, '--conditions=source', '--no-warnings', ...preload];
  const [program = process.execPath, ...args] = [
    ...(options.under ?? []),
    ...node,
    '--input-type=module',
    '-e',
    source,
  ];
  const child = spawn(program, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  let open = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const [last = '', ...whole] = (open + text).split('\n').reverse();
    open = last;
    lines.push(...whole.reverse());
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    errors,
  }));
  return { process: child, lines, ended };
}

function dataUrl(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
