/**
 * Waits until the engine's real server answers: as its administrator over the socket, and over the published address with
 * its own certificate and the rules that are in its file. There is no temporary server that could answer instead (the
 * entrypoint builds its data directory without one, FIELD-CASES B052). What is then observed becomes the pin.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerInfo, Daemon } from '#docker';
import { askForGeneration, pinOf, readServer, RULE_FILE, sha256 } from '#engines';
import { CONTROL_DATABASE } from '#fencing';
import { parseRuleFile } from '#hba';
import type { Reason } from '#kernel';
import { abandon, connectAdmin, errorSentence, isNotReadyYet } from '#postgres';
import type { Pin } from '#protocol';
import type { Act, ActContext, EnginePlace } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { isOurs } from '../docker-marks.ts';
import { lastWords } from '../engine-start/last-words.ts';
import { readExtensions } from './extensions.ts';

/** PostgreSQL 14 and older are refused: there a login can put itself into a group role, and so into a profile. */
const VERSION_MIN = 150_000;
/** Times that the daemon restarted a container of which one waits to answer; more is not bad luck. */
const RESTARTS_MAX = 3;
const PAUSE_MS = 50;

export const act: Act<'engine-ready'> = (context, { engineId, containerId }) =>
  withDaemon(context, 'engine-ready', async (daemon, time) => {
    const { installation } = context;
    const first = await daemon.container(containerId);
    if (first === undefined) return refused('engine_missing', `there is no container ${containerId}`);
    if (!isOurs(first.Config.Labels, { installation, kind: 'engine', id: engineId }))
      return refused('foreign_object', `container ${containerId} is not ours`);
    let waitingFor = 'the server';
    do {
      const container = await daemon.container(containerId);
      const ended = await whyEnded(daemon, container, first.RestartCount);
      if (ended !== undefined) return refused(ended.code, ended.message);
      const found = await look(context, engineId);
      if ('refused' in found) return refused(found.refused.code, found.refused.message);
      if ('server' in found && container !== undefined) {
        const pin: Pin = pinOf(container, found.server);
        const misplaced = misplacedData(pin);
        return misplaced === undefined
          ? applied({ pin: { ...pin }, extensions: found.extensions, serverVersion: found.version })
          : refused('data_outside_volume', misplaced);
      }
      if ('waitingFor' in found) waitingFor = found.waitingFor;
    } while (await time.pause(PAUSE_MS));
    return refused('engine_not_ready', `the engine did not get ready in time; waiting for ${waitingFor}`);
  });

/** The container has ended, or ends again and again: waiting would be for nothing. */
async function whyEnded(
  daemon: Daemon,
  container: ContainerInfo | undefined,
  restartsBefore: number,
): Promise<Reason | undefined> {
  if (container === undefined) return { code: 'engine_missing', message: 'the container is gone' };
  const { Status } = container.State;
  const rests = Status !== 'running' && Status !== 'restarting';
  if (!rests && container.RestartCount - restartsBefore < RESTARTS_MAX) return undefined;
  return { code: 'engine_exits', message: `the server ends by itself: ${await lastWords(daemon, container.Id)}` };
}

type Look =
  | { readonly waitingFor: string }
  | { readonly refused: Reason }
  | {
      readonly server: Awaited<ReturnType<typeof readServer>>;
      readonly extensions: readonly string[];
      readonly version: number;
    };

async function look({ installation, engine }: ActContext, engineId: string): Promise<Look> {
  let client;
  try {
    client = await connectAdmin(engine, CONTROL_DATABASE, { statementTimeoutMs: 10_000 });
  } catch (error) {
    if (isNotReadyYet(error)) return { waitingFor: `the server: ${errorSentence(error)}` };
    // The password of a volume that is older than this engine's files, for one (FIELD-CASES B066).
    return { refused: { code: 'engine_login', message: `the administrator is not let in: ${errorSentence(error)}` } };
  }
  try {
    const { rows } = await client.query<{ version: number; installation: string; engine: string; identity: string }>(
      `select current_setting('server_version_num')::integer as version, installation, engine, identity
         from surefoot.identity`,
    );
    const [row] = rows;
    if (row === undefined || row.version < VERSION_MIN)
      return {
        refused: {
          code: 'engine_version',
          message: `PostgreSQL 15 or newer is needed, this is ${row?.version ?? 'none'}`,
        },
      };
    if (row.installation !== installation || row.engine !== engineId || row.identity !== engine.identity)
      return {
        refused: {
          code: 'foreign_object',
          message: `the server says that it is engine ${row.engine} of ${row.installation}`,
        },
      };
    const tcp = await askForGeneration(engine, generationInFile(engine));
    if (!tcp.asked) return { waitingFor: `the published port ${engine.port}: ${tcp.why}` };
    return { server: await readServer(client), extensions: await readExtensions(client), version: row.version };
  } catch (error) {
    return { waitingFor: `the server: ${errorSentence(error)}` };
  } finally {
    abandon(client);
  }
}

/** After a restart it is the one in force. */
function generationInFile(engine: EnginePlace): number {
  const file = parseRuleFile(readFileSync(join(engine.confFolder, RULE_FILE), 'utf8'), sha256);
  return file.is === 'ours' ? file.generation : 0;
}

/** Data that is not in the named volume would be lost with the container (B062). */
function misplacedData(pin: Pin): string | undefined {
  if (pin.volumeName !== 'absent' && pin.volumeMark !== 'absent') return undefined;
  return `the server's data is not in a volume with our mark (volume ${pin.volumeName}, mark ${pin.volumeMark})`;
}
