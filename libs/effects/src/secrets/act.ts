/**
 * A service's files, put into the volume of its container before that ever runs: connection string, authority, secrets.
 * They are its user's own and nobody else's; the folder is root's, so that the user can neither add nor replace one, unless
 * he is root. They never pass through the container's configuration, its environment or its labels.
 *
 * Only a container that was never started gets them: one that runs may have changed what is there, and what it has read
 * already would not be what it was given. So the same try again finds the container as it was, and puts the same files there.
 */
import { posix } from 'node:path';
import type { ContainerFile, ContainerInfo, Daemon, DaemonError, FileFound } from '#docker';
import { isAnswer } from '#docker';
import { CA_FILE, SERVICE_FOLDER } from '#protocol';
import type { Act } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { codeOf } from '../daemon-said.ts';
import { isOurs } from '../docker-marks.ts';
import { resolveUser } from './user.ts';

const SECRET_MODE = 0o400;
/** An authority's certificate is public, and programs of other users verify with it. */
const CA_MODE = 0o444;
const MODE_BITS = 0o7777;

/** Far more than users and groups, or all files of a service, need. */
const READ_MAX_BYTES = 16 * 1024 * 1024;
const LINKS_MAX = 5;

export const act: Act<'secrets'> = (context, { serviceId, containerId }) =>
  withDaemon(context, 'secrets', async (daemon) => {
    const { installation, secrets } = context;
    const contents = secrets.files;
    if (contents === undefined) return refused('secrets_missing', 'the files of the service were not handed over');
    const container = await daemon.container(containerId);
    if (container?.Id !== containerId) return refused('service_missing', `there is no container ${containerId}`);
    if (!isOurs(container.Config.Labels, { installation, kind: 'service', id: serviceId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    if (container.State.Status !== 'created')
      return refused('service_started', `container ${containerId} is ${container.State.Status}, and was to be new`);
    const user = await userOf(daemon, container);
    if (user === undefined)
      return refused(
        'user_unknown',
        `the image runs as user ${JSON.stringify(container.Config.User)}, whom its /etc/passwd and /etc/group do not name`,
      );
    const files: readonly ContainerFile[] = Object.entries(contents).map(([name, content]) => ({
      name,
      content,
      mode: name === CA_FILE ? CA_MODE : SECRET_MODE,
      ...user,
    }));
    const failure = await put(daemon, containerId, files);
    if (failure !== undefined)
      return refused(codeOf(failure.message, 'files_not_written'), `the files were not written: ${failure.message}`);
    const differences = fileDifferences(files, (await daemon.files(containerId, SERVICE_FOLDER, READ_MAX_BYTES)) ?? []);
    return differences.length === 0
      ? applied({})
      : refused('files_differ', `files came out different from what was put there: ${differences.join('; ')}`);
  });

/** @returns what the daemon said instead of taking them. A part of them may be there: nobody reads it before the end. */
async function put(
  daemon: Daemon,
  containerId: string,
  files: readonly ContainerFile[],
): Promise<DaemonError | undefined> {
  try {
    await daemon.putFiles(containerId, SERVICE_FOLDER, files);
    return undefined;
  } catch (error) {
    if (isAnswer(error)) return error;
    throw error;
  }
}

async function userOf(daemon: Daemon, { Id, Config }: ContainerInfo): Promise<ReturnType<typeof resolveUser>> {
  const [passwd, group] = [await textOf(daemon, Id, '/etc/passwd'), await textOf(daemon, Id, '/etc/group')];
  return resolveUser(Config.User, passwd, group);
}

/** Empty where there is no such file: an image can consist of a single program. */
async function textOf(daemon: Daemon, containerId: string, path: string): Promise<string> {
  let at = path;
  for (let links = 0; links <= LINKS_MAX; links += 1) {
    const [file] = (await daemon.files(containerId, at, READ_MAX_BYTES)) ?? [];
    if (file?.type === 'file') return file.content.toString('utf8');
    if (file?.type !== 'symlink' || file.target === undefined) return '';
    at = posix.resolve(posix.dirname(at), file.target);
  }
  return '';
}

/** Names, owners, modes and sizes; what is in a file is in no sentence. */
function fileDifferences(wanted: readonly ContainerFile[], found: readonly FileFound[]): readonly string[] {
  const there = found.filter(({ type }) => type !== 'directory').map(describe);
  const expected = wanted.map(({ name, mode, uid, gid, content }) =>
    describe({ name, type: 'file', mode, uid, gid, content: Buffer.from(content) }),
  );
  return [
    ...expected.filter((one) => !there.includes(one)).map((one) => `there is no ${one}`),
    ...there.filter((one) => !expected.includes(one)).map((one) => `there is ${one}`),
  ];
}

function describe({ name, type, mode, uid, gid, content }: Omit<FileFound, 'target'>): string {
  return `${type} ${posix.basename(name)} of ${uid}:${gid}, mode 0${(mode & MODE_BITS).toString(8)}, ${content.length} bytes`;
}
