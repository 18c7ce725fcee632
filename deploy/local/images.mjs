import { setTimeout as sleep } from 'node:timers/promises';
import { lastWords } from './command.mjs';
import { SetupFailure } from './failure.mjs';
import { RECIPES, provideLocalImage } from './image-recipes.mjs';

/**
 * Which images an installation runs, decided once: what a variable names; else the official image, where the daemon
 * has it or can pull it; else one with the same interface, built here.
 */

/** How long a registry may take to show that it is there: the daemon itself would wait for minutes. */
const REGISTRY_ANSWER_MS = 10_000;
const PULL_MS = 900_000;

/**
 * @typedef {object} ImageChoice
 * @property {string} variable that names another image
 * @property {string} official
 * @property {import('./image-recipes.mjs').Recipe} recipe
 */

/** @type {readonly (ImageChoice & { field: 'catalogImage' | 'brokerImage' | 'engineImage' })[]} */
const CHOICES = [
  { field: 'catalogImage', variable: 'SUREFOOT_CATALOG_IMAGE', official: 'postgres:17', recipe: RECIPES.postgres },
  {
    field: 'brokerImage',
    variable: 'SUREFOOT_BROKER_IMAGE',
    official: 'rabbitmq:4-management',
    recipe: RECIPES.rabbitmq,
  },
  { field: 'engineImage', variable: 'SUREFOOT_ENGINE_IMAGE', official: 'postgres:17', recipe: RECIPES.postgres },
];

/**
 * Fills in the installation's images; the daemon has them all afterwards.
 *
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {import('./installation.mjs').Installation} installation
 * @param {string} cache
 * @param {import('./progress.mjs').Progress} progress
 * @param {NodeJS.ProcessEnv} [env]
 */
export async function provideImages(docker, installation, cache, progress, env = process.env) {
  /** Catalog and engine usually share one. @type {Map<string, Promise<string>>} */
  const underWay = new Map();
  await Promise.all(
    CHOICES.map(async (choice) => {
      const wanted = env[choice.variable] || installation[choice.field];
      const key = wanted ?? choice.official;
      const provided = underWay.get(key) ?? provideImage(docker, choice, wanted, cache, progress, env);
      underWay.set(key, provided);
      installation[choice.field] = await provided;
    }),
  );
}

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {ImageChoice} choice
 * @param {string | undefined} wanted
 * @param {string} cache
 * @param {import('./progress.mjs').Progress} progress
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<string>} its name
 */
export async function provideImage(docker, { official, recipe, variable }, wanted, cache, progress, env) {
  const prefix = env.SUREFOOT_REGISTRY ? `${env.SUREFOOT_REGISTRY}/` : '';
  const name = wanted ?? `${prefix}${official}`;
  if (name === recipe.image) return provideLocalImage(docker, recipe, cache, progress);
  if (await isPresent(docker, name)) return name;
  const refusal = await pull(docker, name, progress);
  if (refusal === undefined) return name;
  if (wanted !== undefined) {
    throw new SetupFailure(
      `the image ${name} is not in the daemon and cannot be pulled: ${refusal}`,
      `load it into the daemon, or name another one in ${variable}.`,
    );
  }
  progress.say(`  ${name} cannot be pulled here (${refusal}); ${recipe.image} takes its place.`);
  return provideLocalImage(docker, recipe, cache, progress);
}

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {string} name
 */
export async function isPresent(docker, name) {
  return (await docker.try(['image', 'inspect', '--format', '{{.Id}}', name])).code === 0;
}

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {string} name
 * @param {import('./progress.mjs').Progress} progress
 * @returns {Promise<string | undefined>} why not; undefined when it is there
 */
async function pull(docker, name, progress) {
  const cancel = new AbortController();
  /** @type {(detail: string) => void} */
  let note = () => undefined;
  /** @type {() => void} */
  let answered = () => undefined;
  const answer = new Promise(
    (/** @type {(value: 'answers') => void} */ resolve) => (answered = () => resolve('answers')),
  );
  const pulled = docker.try(['pull', name], {
    deadlineMs: PULL_MS,
    signal: cancel.signal,
    onLine: (line) => {
      // Printed when the registry has said what the image consists of; nothing before that shows that there is one.
      if (/: Pulling (from|fs layer)/.test(line)) answered();
      note(line.slice(0, 70));
    },
  });
  const silence = sleep(REGISTRY_ANSWER_MS, /** @type {const} */ ('silence'), { signal: cancel.signal }).catch(
    () => 'silence',
  );
  const first = await progress.wait(`ask for the image ${name}`, () => Promise.race([answer, pulled, silence]));
  if (first === 'silence') {
    cancel.abort();
    return 'no registry answers';
  }
  const result =
    first === 'answers'
      ? await progress.step(`pull ${name}`, (tell) => {
          note = tell;
          return pulled;
        })
      : await pulled;
  cancel.abort();
  return result.code === 0 ? undefined : brief(lastWords(result));
}

/** @param {string} reason */
function brief(reason) {
  return reason.replace(/^Error response from daemon: /, '').slice(0, 160);
}
