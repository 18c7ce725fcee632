import { takeDown } from './stack.mjs';
import { runCommand } from './failure.mjs';
import { homeOf, typed } from './home.mjs';
import { progress } from './progress.mjs';
import { REPOSITORY } from './repository.mjs';

/** `npm stop`: stops what `npm start` started, and nothing else. All data stays. */
await runCommand('npm stop', async () => {
  const home = homeOf(REPOSITORY);
  const shown = progress();
  await takeDown({ home, progress: shown });
  shown.say(`Stopped. The data stays in ${home}; ${typed('npm start', home, REPOSITORY)} goes on with it.`);
});
