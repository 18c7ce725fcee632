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
  /** Instead of all else: what a host holds of environments with a service each, with this many of them. */
  readonly services: number | undefined;
  /** With `services`: up to how many networks the engine joins; by default as many as a host takes. */
  readonly networks: number | undefined;
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
      services: { type: 'string' },
      networks: { type: 'string' },
    },
  });
  const n = Number(values.n);
  if (!Number.isInteger(n) || n < 2) throw new Error('--n is a whole number from 2 up; a verdict wants 30 or more');
  const services = amount('--services', values.services, 2);
  const networks = amount('--networks', values.networks, 0);
  if (services !== undefined && (values.home !== undefined || values.large))
    throw new Error('--services stops and starts a whole installation: it goes with neither --home nor --large');
  if (networks !== undefined && services === undefined) throw new Error('--networks goes with --services');
  return {
    json: values.json,
    n,
    home: values.home,
    large: values.large,
    services,
    networks,
    command: ['npm run bench', ...(args.length === 0 ? [] : ['--', ...args])].join(' '),
  };
}

function amount(option: string, value: string | undefined, least: number): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isInteger(number) || number < least) throw new Error(`${option} is a whole number from ${least} up`);
  return number;
}
