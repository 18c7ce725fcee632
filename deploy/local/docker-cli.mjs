import { request } from 'node:http';
import { lastWords, tryCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';

/**
 * One daemon, as set-up talks to it: through the machine's `docker` program, which knows the user's registries,
 * proxies and credentials, and for the quick question "are you there" straight over its socket.
 */
export class Docker {
  /** @param {string} host the daemon's address as DOCKER_HOST has it */
  constructor(host) {
    this.host = host;
  }

  /** What a program started by us is told, so that it talks to this daemon and to no other. */
  get env() {
    // A context chosen by the user would win over nothing here, yet confuse the reader of an error.
    const { DOCKER_CONTEXT: _context, ...rest } = process.env;
    // Without the buildx plug-in the program can only use the builder inside the daemon; our builds need no other.
    return { ...rest, DOCKER_HOST: this.host, DOCKER_BUILDKIT: '0', DOCKER_CLI_HINTS: 'false' };
  }

  /**
   * @param {readonly string[]} args
   * @param {Omit<import('./command.mjs').CommandOptions, 'env'>} [options]
   */
  try(args, options) {
    return tryCommand('docker', args, { deadlineMs: 120_000, ...options, env: this.env });
  }

  /**
   * @param {readonly string[]} args
   * @param {Omit<import('./command.mjs').CommandOptions, 'env'>} [options]
   * @returns {Promise<string>} what it printed, trimmed
   */
  async run(args, options) {
    const result = await this.try(args, options);
    if (result.code !== 0) {
      throw new SetupFailure(
        `docker ${args.slice(0, 2).join(' ')} failed: ${lastWords(result)}`,
        `see whether the daemon at ${this.host} is well (DOCKER_HOST=${this.host} docker info), then run it again.`,
      );
    }
    return result.stdout.trim();
  }

  /**
   * @param {readonly string[]} args an `ls` of docker that prints ids with `--quiet`
   * @returns {Promise<string[]>}
   */
  async ids(args) {
    return (await this.run(args)).split('\n').filter((line) => line !== '');
  }
}

/** @typedef {'answers' | 'absent' | 'denied' | 'silent'} DaemonState */

const PING_MS = 3_000;

/**
 * @param {string} host `unix:///path`
 * @returns {Promise<DaemonState>}
 */
export function askDaemon(host) {
  return new Promise((resolve) => {
    const call = request({ socketPath: socketOf(host), path: '/_ping', timeout: PING_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'answers' : 'silent');
    });
    call.on('timeout', () => call.destroy(new Error('no answer')));
    call.on('error', (error) => {
      const code = 'code' in error ? error.code : undefined;
      if (code === 'EACCES' || code === 'EPERM') resolve('denied');
      else if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR') resolve('absent');
      else resolve('silent');
    });
    call.end();
  });
}

/** @param {string} host */
export function socketOf(host) {
  if (!host.startsWith('unix:///')) {
    throw new SetupFailure(
      `DOCKER_HOST is ${host}, but the daemon must be on this machine, at a Unix socket`,
      'set DOCKER_HOST to unix:///path/of/the/socket, or leave it unset.',
    );
  }
  return host.slice('unix://'.length);
}
