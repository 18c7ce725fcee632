import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tryCommand } from '../../../deploy/local/command.mjs';
import { Docker, askDaemon } from '../../../deploy/local/docker-cli.mjs';
import { SetupFailure, runCommand } from '../../../deploy/local/failure.mjs';
import { homeOf, typed } from '../../../deploy/local/home.mjs';
import { RECIPES, nodeRecipe } from '../../../deploy/local/image-recipes.mjs';
import { isPresent, provideImage } from '../../../deploy/local/images.mjs';
import { readLocalEnv } from '../../../deploy/local/installation.mjs';
import { productNode } from '../../../deploy/local/node-runtime.mjs';
import { progress } from '../../../deploy/local/progress.mjs';
import { REPOSITORY } from '../../../deploy/local/repository.mjs';
import { cacheFolder } from '../../../deploy/local/stack.mjs';

/**
 * Builds the images of this example in the installation's daemon: `surefoot-example/notes` and
 * `surefoot-example/pgbouncer`. Each is `docker build` of a folder beside this file, on an official image where one can be
 * had, and else on one that is built here from Debian packages. What is there already is not built again.
 */

const EXAMPLE = fileURLToPath(new URL('.', import.meta.url));

await runCommand('build.mjs', async () => {
  const home = homeOf(REPOSITORY);
  const { DOCKER_HOST: host } = await readLocalEnv(home);
  if (host === undefined || (await askDaemon(host)) !== 'answers') {
    throw new SetupFailure(
      `${home} has no installation that runs`,
      `${typed('npm start', home, REPOSITORY)}, then again.`,
    );
  }
  const docker = new Docker(host);
  const [node, debian] = await Promise.all([
    base(docker, 'node:24-slim', await nodeRecipe(await productNode())),
    base(docker, 'debian:trixie-slim', RECIPES.pgbouncer),
  ]);
  await Promise.all([
    image(docker, 'surefoot-example/notes', 'app', node, putPackages),
    image(docker, 'surefoot-example/pgbouncer', 'pgbouncer', debian),
  ]);
});

/**
 * @param {Docker} docker
 * @param {string} official
 * @param {import('../../../deploy/local/image-recipes.mjs').Recipe} recipe of the image that takes its place
 */
async function base(docker, official, recipe) {
  // A registry that was not there the last time is not asked for again.
  const wanted = (await isPresent(docker, recipe.image)) ? recipe.image : undefined;
  const choice = { official, recipe, variable: 'SUREFOOT_REGISTRY' };
  return provideImage(docker, choice, wanted, cacheFolder(), progress(), process.env);
}

/**
 * @param {Docker} docker
 * @param {string} name
 * @param {string} folder
 * @param {string} from
 * @param {(context: string) => Promise<void>} [complete] puts more beside the Dockerfile
 */
async function image(docker, name, folder, from, complete) {
  const context = await mkdtemp(join(tmpdir(), 'surefoot-example-'));
  try {
    await cp(join(EXAMPLE, folder), context, { recursive: true });
    await complete?.(context);
    // Images run as other users than the one who checked this out, whose files may be closed to them.
    await tryCommand('chmod', ['-R', 'u+rwX,go+rX', context]);
    // On an image from here nothing is left to fetch.
    const network = from.startsWith('surefoot-local/') ? ['--network', 'none'] : [];
    const args = ['build', '--quiet', ...network, '--build-arg', `BASE=${from}`, '--tag', name, context];
    await progress().step(`image ${name}`, () => docker.run(args, { deadlineMs: 600_000 }));
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/**
 * What `npm ci --omit=dev` would put there, taken from the packages of the project.
 *
 * @param {string} context
 */
async function putPackages(context) {
  const { dependencies } = JSON.parse(await readFile(join(context, 'package.json'), 'utf8'));
  const wanted = Object.keys(dependencies);
  for (const name of wanted) {
    const from = join(REPOSITORY, 'node_modules', name);
    await cp(from, join(context, 'node_modules', name), { recursive: true });
    const found = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'));
    // An array that grows while it is walked.
    wanted.push(...Object.keys(found.dependencies ?? {}).filter((needed) => !wanted.includes(needed)));
  }
}
