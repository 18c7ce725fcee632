/** Where things are in the state folder (DESIGN §11). Absolute paths; nothing is made or read here. */
import { join } from 'node:path';

export interface HomePaths {
  readonly home: string;
  readonly localEnv: string;
  /** Pid and ready files. */
  readonly run: string;
  readonly log: string;
  readonly host: string;
  readonly receipts: string;
  readonly witnesses: string;
  readonly fences: string;
  readonly engines: string;
  /** Age record of this host: JSON `{identity, claimNumber}`. */
  readonly epoch: string;
  /** Key that credentials are sealed with. */
  readonly key: string;
  readonly caFolder: string;
  readonly caFile: string;
  readonly caKeyFile: string;
}

export function homePaths(home: string): HomePaths {
  const host = join(home, 'host');
  const caFolder = join(host, 'ca');
  return {
    home,
    localEnv: join(home, 'local.env'),
    run: join(home, 'run'),
    log: join(home, 'log'),
    host,
    receipts: join(host, 'receipts'),
    witnesses: join(host, 'witnesses'),
    fences: join(host, 'fences'),
    engines: join(host, 'engines'),
    epoch: join(host, 'epoch'),
    key: join(host, 'key'),
    caFolder,
    caFile: join(caFolder, 'ca.pem'),
    caKeyFile: join(caFolder, 'ca.key'),
  };
}
