/**
 * psql with an environment's login. The password is in neither its arguments nor its environment: it is in an open file
 * that has no name any more, which PGPASSFILE leads to (libpq, "The Password File": a plain file of mode 0600). So nothing
 * is left behind, however this ends.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { constants as osConstants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Login } from './api.ts';
import { CommandFailure, EXIT } from './failure.ts';

/** Others of libpq's variables could lead elsewhere, or win over the password file. */
const KEPT_VARIABLES = new Set(['PGOPTIONS', 'PGCLIENTENCODING', 'PGTZ', 'PGDATESTYLE', 'PGCONNECT_TIMEOUT']);
const PASSWORD_DESCRIPTOR = 3;

/** @returns what psql exits with */
export async function runPsql(login: Login, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const target = targetOf(login);
  if (target.rootCertificate !== undefined && !existsSync(target.rootCertificate))
    throw new CommandFailure(EXIT.unreachable, 'no_certificate', `${target.rootCertificate} is not on this machine`, {
      next: 'the authority that the server is checked against: copy it there from the host of the engine',
    });
  const file = openPasswordFile(passwordLine(target, login.password));
  try {
    return await run([...args, '--dbname', connectionString(target)], cleanEnvironment(env), file);
  } finally {
    closeSync(file);
  }
}

interface Target {
  readonly host: string;
  readonly port: string;
  readonly database: string;
  readonly user: string;
  readonly rootCertificate: string | undefined;
}

function targetOf({ uri, user }: Login): Target {
  const url = new URL(uri);
  return {
    host: decodeURIComponent(url.hostname),
    port: url.port,
    database: decodeURIComponent(url.pathname.slice(1)),
    user,
    rootCertificate: url.searchParams.get('sslrootcert') ?? undefined,
  };
}

/** libpq, "Connection Strings": single quotes, in which a backslash escapes. */
export function connectionString({ host, port, database, user, rootCertificate }: Target): string {
  const values = {
    host,
    port,
    dbname: database,
    user,
    sslmode: 'verify-full',
    ...(rootCertificate === undefined ? {} : { sslrootcert: rootCertificate }),
  };
  return Object.entries(values)
    .map(([name, value]) => `${name}='${value.replace(/[\\']/g, '\\$&')}'`)
    .join(' ');
}

/** Colons and backslashes are escaped; the database is any, so that `\connect` within the engine finds it too. */
export function passwordLine({ host, port, user }: Target, password: string): string {
  return [host, port, user, password]
    .map((part) => part.replace(/[\\:]/g, '\\$&'))
    .toSpliced(2, 0, '*')
    .join(':');
}

function openPasswordFile(line: string): number {
  const path = join(tmpdir(), `surefoot-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  // Before anything is in it.
  unlinkSync(path);
  writeSync(file, `${line}\n`);
  return file;
}

function cleanEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name]) => (!name.startsWith('PG') || KEPT_VARIABLES.has(name)) && !name.startsWith('SUREFOOT_'),
  );
  return { ...Object.fromEntries(kept), PGPASSFILE: `/dev/fd/${PASSWORD_DESCRIPTOR}` };
}

function run(args: readonly string[], env: NodeJS.ProcessEnv, file: number): Promise<number> {
  // Ctrl-C is psql's, which ends a statement with it.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  return new Promise<number>((resolve, reject) => {
    const child = spawn('psql', args, { stdio: ['inherit', 'inherit', 'inherit', file], env });
    child.once('error', (error) => reject(notStarted(error)));
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : osConstants.signals[signal])));
  }).finally(() => process.off('SIGINT', ignore));
}

function notStarted(error: Error): CommandFailure {
  const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return new CommandFailure(
    EXIT.unreachable,
    'no_psql',
    missing ? 'the program psql is not installed on this machine' : `psql cannot be started: ${error.message}`,
    {
      next: 'install it (Debian, Ubuntu: apt install postgresql-client), or use any client with: surefoot env credentials',
      cause: error,
    },
  );
}
