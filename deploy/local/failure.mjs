/**
 * A failure that a person can act on: what went wrong, and what to do next. Everything a set-up command expects to go
 * wrong is thrown as one of these, so that nobody is ever answered with a stack trace.
 */
export class SetupFailure extends Error {
  /**
   * @param {string} message what went wrong, one sentence
   * @param {string} next what the reader can do about it
   * @param {{ cause?: unknown, exitCode?: number }} [options]
   */
  constructor(message, next, { cause, exitCode = 1 } = {}) {
    super(message, { cause });
    this.name = 'SetupFailure';
    this.next = next;
    this.exitCode = exitCode;
  }
}

/**
 * Runs a command of ours to its end and turns whatever it throws into two lines and an exit code.
 *
 * @param {string} command as the user typed it, `npm start`
 * @param {() => Promise<void>} work
 */
export async function runCommand(command, work) {
  // process.exit runs the 'exit' listeners, and so the clean-ups that a plain death by signal would skip.
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  // A reader that goes away (npm start | head) is no reason to leave things half done.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    await work();
  } catch (error) {
    process.exitCode = error instanceof SetupFailure ? error.exitCode : 1;
    for (const line of explain(command, error)) console.error(line);
  }
}

/**
 * @param {string} command
 * @param {unknown} error
 */
function explain(command, error) {
  const lines = ['', `${command} could not go on: ${error instanceof SetupFailure ? error.message : messageOf(error)}`];
  lines.push(
    error instanceof SetupFailure
      ? `What to do: ${error.next}`
      : `What to do: run it again with SUREFOOT_DEBUG=1 to see where this comes from; it goes on where it stopped.`,
  );
  if (process.env.SUREFOOT_DEBUG && error instanceof Error) lines.push('', error.stack ?? '', causeOf(error));
  return lines;
}

/** @param {unknown} error @returns {string} with the innermost cause, which says what the outer ones only sum up */
export function messageOf(error) {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${messageOf(error.cause)}` : error.message;
}

/** @param {Error} error */
function causeOf(error) {
  return error.cause instanceof Error ? `caused by ${error.cause.stack ?? error.cause.message}` : '';
}

/**
 * @param {unknown} error
 * @returns {string | undefined} `ENOENT` and the like
 */
export function errnoOf(error) {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
