/**
 * One try to reach a service, made from inside the engine's container, which is in the same network: the host itself has no
 * way into it. What is asked for comes as arguments and never as a part of the script; what is answered is a stranger's.
 */
import type { Daemon } from '#docker';
import type { HealthCheck } from '#protocol';

export type Tried = { readonly well: true } | { readonly well: false; readonly why: string };

/** For one try, connection and answer together. */
const TRY_SECONDS = 3;
/** The program is ended by itself before that; only a daemon that hangs takes as long. */
const EXEC_DEADLINE_MS = 10_000;
const OUTPUT_MAX_BYTES = 4_096;
/** A status line has 12 characters that count. */
const STATUS_LINE_BYTES = 64;

/** Somebody without a name and without rights, though the engine's files are not his to read anyway. */
const NOBODY = '65534:65534';

const CONNECT = String.raw`exec 3<>"/dev/tcp/$1/$2"`;
/**
 * As many health checks inside a container, it asks `localhost`, which servers that look at the name let in by default.
 * The answer is read to the end of its first line only.
 */
const ASK = String.raw`
printf 'GET %s HTTP/1.1\r\nHost: localhost:%s\r\nUser-Agent: surefoot\r\nAccept: */*\r\nConnection: close\r\n\r\n' "$3" "$2" >&3
IFS= read -r -n ${STATUS_LINE_BYTES} line <&3
printf '%s' "$line"`;

/** What a request line takes as its second word; with a space or a line end in it, it would be another request. */
const PATH = /^\/[\x21-\x7e]*$/;
const ADDRESS = /^\d{1,3}(\.\d{1,3}){3}$/;

/** TIMEOUT of coreutils; KILL as the shell shows it, and as busybox does. */
const TIMED_OUT = new Set([124, 137, 143]);
/** TIMEOUT's own failure, a program that does not run, and one that is not there; the daemon says the same of TIMEOUT. */
const NOT_RUN = new Set([125, 126, 127]);

/** @throws DaemonError */
export async function tryToReach(
  daemon: Daemon,
  engineContainerId: string,
  address: string,
  { http, tcp }: Pick<HealthCheck, 'http' | 'tcp'>,
): Promise<Tried> {
  const port = http?.port ?? tcp?.port ?? 0;
  if (!ADDRESS.test(address) || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new TypeError(`${JSON.stringify(address)}, port ${port}, is no place in a network`);
  if (http !== undefined && !PATH.test(http.path)) throw new TypeError('a health check’s path is not a URL’s path');
  const what = http === undefined ? `port ${port}` : `GET ${http.path}`;
  const script = http === undefined ? CONNECT : `${CONNECT} || exit 1${ASK}`;
  const values = [address, String(port), ...(http === undefined ? [] : [http.path])];
  const { exitCode, stdout, stderr } = await daemon.exec(
    engineContainerId,
    {
      command: ['timeout', '-s', 'KILL', String(TRY_SECONDS), 'bash', '-c', script, 'surefoot', ...values],
      user: NOBODY,
      env: { LC_ALL: 'C' },
      maxBytes: OUTPUT_MAX_BYTES,
    },
    EXEC_DEADLINE_MS,
  );
  if (NOT_RUN.has(exitCode)) return { well: false, why: `${what} cannot be tried: ${whyNotRun(stdout + stderr)}` };
  if (TIMED_OUT.has(exitCode)) return { well: false, why: `${what}: no answer within ${TRY_SECONDS} s` };
  if (http === undefined) return exitCode === 0 ? { well: true } : { well: false, why: `${what}: ${reasonIn(stderr)}` };
  const status = /^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(stdout)?.[1];
  if (status !== undefined)
    return /^[23]/.test(status) ? { well: true } : { well: false, why: `${what} answered ${status}` };
  if (stdout === '') return { well: false, why: `${what}: ${reasonIn(stderr)}` };
  return { well: false, why: `${what} answered, but not in HTTP` };
}

/** What is asked of an engine's image beside its server. Which of the two it is stands in the sentence of whoever ran it. */
function whyNotRun(said: string): string {
  const program = /"timeout"/.test(said) ? 'timeout' : 'bash';
  if (/not found|no such file/i.test(said)) return `the engine’s image has no ${program}`;
  if (/permission denied/i.test(said)) return `the engine’s image has a ${program} that not everybody may run`;
  return 'in the engine’s container nothing can be run';
}

/** bash's own sentence, which has our arguments in it, comes down to what it says about the network. */
function reasonIn(stderr: string): string {
  const [reason] =
    /connection refused|no route to host|network is unreachable|connection timed out/i.exec(stderr) ?? [];
  return reason?.toLowerCase() ?? 'the connection ended without an answer';
}
