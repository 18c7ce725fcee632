import { join } from 'node:path';
import { tryCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';
import { REPOSITORY } from './repository.mjs';

/** The first major that the product supports. These set-up scripts themselves run on the Node that the machine has. */
const OLDEST_MAJOR = 24;

/**
 * The Node that the product runs on: the one that npm brought for this processor, else one of the machine that is
 * recent enough. Named by its path everywhere, since the machine's own may come first in PATH.
 *
 * @returns {Promise<string>}
 */
export async function productNode() {
  const brought = join(REPOSITORY, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node');
  const found = [];
  for (const candidate of [brought, 'node']) {
    const { code, stdout } = await tryCommand(candidate, ['--print', 'process.execPath + " " + process.version']);
    const [, path, version, major] = /^(.+) (v(\d+)\..*)$/.exec(stdout.trim()) ?? [];
    if (code !== 0 || path === undefined) continue;
    if (Number(major) >= OLDEST_MAJOR) return path;
    found.push(version);
  }
  throw new SetupFailure(
    `Node ${OLDEST_MAJOR} or later is needed, and npm brought none for ${process.platform} on ${process.arch}` +
      (found.length > 0 ? ` (found ${found.join(', ')})` : ''),
    `install Node ${OLDEST_MAJOR} and put it first in PATH, then run this again.`,
  );
}
