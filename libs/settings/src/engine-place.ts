/** Where an engine's files are, and how it is reached from this host. The shape is `EnginePlace` of libs/effects. */
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { utf8Bytes } from '#kernel';
import type { Settings } from './settings.ts';

interface Place {
  readonly engineId: string;
  readonly name: string;
  readonly folder: string;
  readonly confFolder: string;
  readonly socketFolder: string;
  readonly adminPasswordFile: string;
  readonly caFile: string;
  readonly caKeyFile: string;
  readonly port: number;
  readonly identity: string;
}

export function enginePlace(
  settings: Settings,
  engine: { readonly id: string; readonly name: string; readonly port: number; readonly identity: string },
): Place {
  const { paths } = settings;
  const folder = join(paths.engines, engine.id);
  return {
    engineId: engine.id,
    name: engine.name,
    folder,
    confFolder: join(folder, 'conf'),
    socketFolder: socketFolder(settings, engine.id),
    adminPasswordFile: join(folder, 'admin-password'),
    caFile: paths.caFile,
    caKeyFile: paths.caKeyFile,
    port: engine.port,
    identity: engine.identity,
  };
}

/** unix(7): sun_path has 108 bytes, the last of them NUL. */
const SOCKET_PATH_MAX_BYTES = 107;
const SOCKET_FILE = '.s.PGSQL.5432';

/**
 * Beside the engine's other files, unless the socket's path would be too long there. Then a short folder that outlives a
 * restart of the machine (a container that the daemon starts again finds its mount), and that nobody else could have made
 * before us: not below /run or /tmp.
 * @param base where short folders are; told by tests
 */
export function socketFolder(
  settings: Pick<Settings, 'paths' | 'installation'>,
  engineId: string,
  base: string = shortBase(),
): string {
  const beside = join(settings.paths.engines, engineId, 'socket');
  if (fits(beside)) return beside;
  const short = join(base, settings.installation.slice(0, 8), engineId.slice(0, 8));
  if (fits(short)) return short;
  throw new TypeError(`the path of a socket in ${beside} is too long: choose a shorter SUREFOOT_HOME`);
}

function fits(folder: string): boolean {
  return utf8Bytes(join(folder, SOCKET_FILE)) <= SOCKET_PATH_MAX_BYTES;
}

function shortBase(): string {
  return process.geteuid?.() === 0 ? '/var/lib/surefoot' : join(userInfo().homedir, '.local', 'state', 'surefoot');
}
