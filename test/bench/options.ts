import { parseArgs } from 'node:util';

export interface Options {
  /** Where the result is written, as JSON. */
  readonly json: string | undefined;
  /** Samples of each measure that is interleaved with a baseline. */
  readonly n: number;
  /** SUREFOOT_HOME of a running installation; without it a private one is made, and removed afterwards. */
  readonly home: string | undefined;
  /** Also measure against ten thousand environments' roles in the engine. */
  readonly large: boolean;
  /** As typed, for the record. */
  readonly command: string;
}

/** @throws Error with a sentence for the terminal */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: 'string' },
      n: { type: 'string', default: '30' },
      home: { type: 'string' },
      large: { type: 'boolean', default: false },
    },
  });
  const n = Number(values.n);
  if (!Number.isInteger(n) || n < 2) throw new Error('--n is a whole number from 2 up; a verdict wants 30 or more');
  return {
    json: values.json,
    n,
    home: values.home,
    large: values.large,
    command: ['npm run bench', ...(args.length === 0 ? [] : ['--', ...args])].join(' '),
  };
}
