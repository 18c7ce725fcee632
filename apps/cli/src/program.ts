/** The commands, and what becomes of whatever they throw. */
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { Command, CommanderError } from 'commander';
import { caseCommands } from './commands/case.ts';
import type { Context } from './commands/context.ts';
import { doctorCommand } from './commands/doctor.ts';
import { engineCommands } from './commands/engine.ts';
import { environmentCommands } from './commands/environment.ts';
import { operationCommands } from './commands/operation.ts';
import { projectCommands } from './commands/project.ts';
import { psqlCommand } from './commands/psql.ts';
import { registryCommands } from './commands/registry.ts';
import { gatewayFrom } from './connection.ts';
import { CommandFailure, EXIT } from './failure.ts';
import { RestClient } from './rest-client.ts';
import { showFailure, type Terminal } from './terminal.ts';

const EXIT_CODES = `
Exit codes: 0 done, 1 failed, 2 usage, 3 refused or conflict, 4 blocked (a case exists), 5 cannot reach,
6 timed out waiting.
SUREFOOT_URL and SUREFOOT_API_KEY say which gateway, else the state folder SUREFOOT_HOME does.`;

/** @param args without program and script. @returns the exit code */
export async function runProgram(args: readonly string[], terminal: Terminal, env: NodeJS.ProcessEnv): Promise<number> {
  let code: number = EXIT.done;
  const program = new Command('surefoot').description('PostgreSQL environments on your own hosts').exitOverride();
  program.configureOutput({
    writeOut: (text) => terminal.out(text.trimEnd()),
    writeErr: (text) => terminal.err(text.trimEnd()),
  });
  program.version(version(), '--version', 'say which version this is');
  program.addHelpText('after', EXIT_CODES).showHelpAfterError('(see --help)');
  const context: Context = { terminal, env, client: () => new RestClient(gatewayFrom(env)) };
  const exitWith = (wanted: number): void => void (code = wanted);
  environmentCommands(program, context);
  operationCommands(program, context);
  psqlCommand(program, context, exitWith);
  projectCommands(program, context);
  engineCommands(program, context);
  registryCommands(program, context);
  caseCommands(program, context);
  doctorCommand(program, context, exitWith);
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    // Commander has said it already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    showFailure(terminal, args.includes('--json'), known(error));
    return known(error).exit;
  }
}

/** Of the package that this file belongs to, built or not. */
function version(): string {
  const file = findPackageJSON(import.meta.url);
  if (file === undefined) throw new TypeError('this program has lost its package.json');
  return `surefoot ${(JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version}`;
}

/** A mistake of this program is told as one, with its message, and not as a stack. */
function known(error: unknown): CommandFailure {
  if (error instanceof CommandFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new CommandFailure(EXIT.failed, 'internal', `this program failed: ${message}`, { cause: error });
}
