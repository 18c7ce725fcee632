import { SetupFailure, runCommand } from './failure.mjs';
import { homeOf, typed } from './home.mjs';
import { progress } from './progress.mjs';
import { REPOSITORY } from './repository.mjs';
import { describeInstallation, removeInstallation } from './stack.mjs';

/** `npm run reset -- --yes`: removes this installation with all its data. Without `--yes` it only says what that is. */
await runCommand('npm run reset', async () => {
  const home = homeOf(REPOSITORY);
  const shown = progress();
  const asked = process.argv.slice(2);
  const unknown = asked.find((argument) => argument !== '--yes');
  if (unknown !== undefined) {
    throw new SetupFailure(`${unknown} is not an option of it`, 'npm run reset -- --yes', { exitCode: 2 });
  }
  const parts = await describeInstallation(home);
  shown.say(`To be removed, with all data in it:\n${parts.map((part) => `  ${part}`).join('\n')}`);
  if (!asked.includes('--yes')) {
    shown.say(`Nothing was removed. This removes it, for good: ${typed('npm run reset -- --yes', home, REPOSITORY)}`);
    process.exitCode = 2;
    return;
  }
  await removeInstallation({ home, progress: shown });
  shown.say('Removed. Images in a daemon of yours, and the cache, stay: other installations may use them.');
});
