/** The command line (DESIGN §9): a client of the gateway like any other. Only `doctor` looks at the host. */
import { runProgram } from './program.ts';
import { processTerminal } from './terminal.ts';

// Not process.exit(): what was written to a pipe would be cut off.
process.exitCode = await runProgram(process.argv.slice(2), processTerminal(), process.env);
