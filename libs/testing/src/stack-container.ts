import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs a program in the container of the stack that serves an address: what no client may do, its own administrator can.
 * @param dockerHost as DOCKER_HOST
 * @param address a URL with the published port
 * @returns what it printed, trimmed
 */
export async function inStackContainer(
  dockerHost: string,
  address: string,
  { user = 'root', command }: { readonly user?: string; readonly command: readonly string[] },
): Promise<string> {
  const docker = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('docker', ['-H', dockerHost, ...args])).stdout.trim();
  const container = await docker('ps', '-q', '--filter', `publish=${new URL(address).port}`);
  return docker('exec', '-u', user, container, ...command);
}
