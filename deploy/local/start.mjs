import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { runCommand } from './failure.mjs';
import { homeOf } from './home.mjs';
import { productNode } from './node-runtime.mjs';
import { progress } from './progress.mjs';
import { REPOSITORY } from './repository.mjs';
import { bringUp } from './stack.mjs';

/**
 * `npm start`: brings everything up, whatever of it is missing, stopped or out of date, and then does the main job
 * once, to show that it works and how it is used. Returns when that is done; what it started runs on.
 */
await runCommand('npm start', async () => {
  const home = homeOf(REPOSITORY);
  const shown = progress();
  shown.say(`Surefoot, state in ${home}`);
  await bringUp({ home, progress: shown });
  process.exitCode = await makeFirstEnvironment(home);
});

/**
 * In a process of its own: it uses packages of the project, which want a newer Node than the machine may have.
 *
 * @param {string} home
 * @returns {Promise<number>} its exit code
 */
async function makeFirstEnvironment(home) {
  const node = await productNode();
  const script = fileURLToPath(new URL('./first-environment.mjs', import.meta.url));
  return new Promise((resolve, reject) => {
    const child = spawn(node, [script], { stdio: 'inherit', env: { ...process.env, SUREFOOT_HOME: home } });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}
