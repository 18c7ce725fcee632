import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastWords, tryCommand } from './command.mjs';
import { architecture, fetchPackages, findArchive } from './debian-archive.mjs';
import { SetupFailure } from './failure.mjs';

/**
 * Images with the interface of the official ones, built from Debian's packages where no image registry is reachable.
 * The packages are only unpacked, never installed: a quarter of the time and half of the size. The finished image is
 * kept as a file in the cache, so that another home or a fresh daemon only loads it.
 */

const IMAGES = fileURLToPath(new URL('../images/', import.meta.url));

/** The release whose packages are taken, whatever the machine runs: it has the majors that we want. */
const SUITE = 'trixie';

const BASE_PACKAGES = ['base-files', 'bash', 'coreutils', 'findutils', 'gosu', 'grep', 'gzip', 'hostname', 'libc-bin'];
BASE_PACKAGES.push('sed', 'tzdata', 'util-linux');

/** What a server in a container has no use for, though Debian's packages ask for it. */
const WITHHELD = ['adduser', 'debconf', 'dpkg', 'init-system-helpers', 'libpam-modules', 'libpam-modules-bin'];
WITHHELD.push('libpam-runtime', 'locales', 'login', 'login.defs', 'passwd', 'perl', 'perl-base', 'python3', 'systemd');
WITHHELD.push('sensible-utils', 'tar', 'ucf');

const LEFT_OUT = ['./usr/share/doc/*', './usr/share/man/*', './usr/share/info/*', './usr/share/locale/*'];
LEFT_OUT.push('./usr/share/i18n/*', './usr/share/lintian/*', './usr/share/bug/*', './usr/share/bash-completion/*');
LEFT_OUT.push('./usr/share/zoneinfo/right/*', './usr/lib/*/gconv/*', './usr/lib/postgresql/*/lib/bitcode/*');
LEFT_OUT.push('./usr/lib/postgresql/*/lib/llvmjit*');

/**
 * @typedef {object} Recipe
 * @property {string} image its name; never an official one
 * @property {string} folder under deploy/images
 * @property {readonly string[]} packages
 * @property {readonly string[]} withheld
 * @property {{ version: string, paths: Readonly<Record<string, string>> }} [files] that are put beside its Dockerfile, by
 *   their names there; the version stands for what is in them
 */

/** @satisfies {Record<string, Recipe>} */
export const RECIPES = {
  postgres: {
    image: 'surefoot-local/postgres:17',
    folder: 'postgres',
    packages: ['postgresql-17', 'libnss-wrapper', ...BASE_PACKAGES],
    withheld: [...WITHHELD, 'libllvm19', 'postgresql-client-common', 'postgresql-common', 'ssl-cert'],
  },
  rabbitmq: {
    image: 'surefoot-local/rabbitmq:4',
    folder: 'rabbitmq',
    packages: ['rabbitmq-server', 'procps', ...BASE_PACKAGES],
    withheld: [...WITHHELD, 'openssl', 'socat'],
  },
  node: {
    image: 'surefoot-local/node:24',
    folder: 'node',
    packages: ['libstdc++6', 'libgcc-s1', ...BASE_PACKAGES],
    withheld: WITHHELD,
  },
  pgbouncer: {
    image: 'surefoot-local/pgbouncer:1',
    folder: 'pgbouncer',
    packages: ['pgbouncer', ...BASE_PACKAGES],
    withheld: [...WITHHELD, 'postgresql-common', 'sysvinit-utils'],
  },
};

/**
 * @param {string} program of Node, which also runs the project
 * @returns {Promise<Recipe>}
 */
export async function nodeRecipe(program) {
  const { stdout } = await tryCommand(program, ['--version']);
  return { ...RECIPES.node, files: { version: stdout.trim(), paths: { node: program } } };
}

const RECIPE_LABEL = 'surefoot.recipe';

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {Recipe} recipe
 * @param {string} cache
 * @param {import('./progress.mjs').Progress} progress
 * @returns {Promise<string>} the image's name; the daemon has it
 */
export async function provideLocalImage(docker, recipe, cache, progress) {
  const digest = await recipeDigest(recipe);
  const label = `{{index .Config.Labels "${RECIPE_LABEL}"}}`;
  const present = await docker.try(['image', 'inspect', '--format', label, recipe.image]);
  if (present.code !== 0 || present.stdout.trim() !== digest) {
    await progress.step(`image ${recipe.image}`, (note) => {
      const announce = () => progress.say(`  Building ${recipe.image} from Debian packages; it is kept in ${cache}`);
      return loadOrBuild(docker, recipe, digest, cache, { note, announce });
    });
  }
  return recipe.image;
}

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {Recipe} recipe
 * @param {string} digest
 * @param {string} cache
 * @param {{ note: (detail: string) => void, announce: () => void }} told `announce` only when it is built
 */
async function loadOrBuild(docker, recipe, digest, cache, { note, announce }) {
  const kept = join(cache, 'images', `${recipe.folder}.${await architecture()}.${digest}.tar`);
  note('loading it from the cache');
  if ((await docker.try(['load', '--quiet', '--input', kept])).code === 0) return;
  announce();
  await build(docker, recipe, digest, cache, kept, note);
}

/** @param {Recipe} recipe */
async function recipeDigest({ files, ...recipe }) {
  const hash = createHash('sha256').update(JSON.stringify([SUITE, recipe, LEFT_OUT, UNPACK]));
  if (files !== undefined) hash.update(files.version);
  const folder = join(IMAGES, recipe.folder);
  for (const name of (await readdir(folder)).sort()) hash.update(name).update(await readFile(join(folder, name)));
  return hash.digest('hex').slice(0, 16);
}

/**
 * One tree, with the links that make /bin and /lib parts of /usr, from all packages; then one archive that root owns
 * whoever unpacked it. Programs that only root could set up (device files, owners) are not in these packages.
 */
const UNPACK = `
umask 022
tree=$1 archive=$2
shift 2
for part in bin sbin lib lib64; do
  mkdir -p "$tree/usr/$part"
  ln -s "usr/$part" "$tree/$part"
done
while read -r package; do
  dpkg-deb --fsys-tarfile "$package" |
    tar --extract --directory "$tree" --preserve-permissions --keep-directory-symlink "$@"
done
mkdir -p "$tree"/{dev,proc,sys,root,run,tmp,var}
rm -rf "$tree/var/run"
ln -s /run "$tree/var/run"
[ -e "$tree/usr/bin/sh" ] || ln -s bash "$tree/usr/bin/sh"
tar --create --file "$archive" --directory "$tree" --owner 0 --group 0 --numeric-owner --sort name .
`;

/**
 * @param {import('./docker-cli.mjs').Docker} docker
 * @param {Recipe} recipe
 * @param {string} digest
 * @param {string} cache
 * @param {string} kept
 * @param {(detail: string) => void} note
 */
async function build(docker, recipe, digest, cache, kept, note) {
  const archive = await findArchive(cache);
  if (archive?.family !== 'Debian') {
    throw new SetupFailure(
      'no image registry is reachable, and images can only be built on a machine with a Debian package archive',
      'load postgres:17 and rabbitmq:4-management into the daemon (docker load), or name images that it has in ' +
        'SUREFOOT_CATALOG_IMAGE, SUREFOOT_BROKER_IMAGE and SUREFOOT_ENGINE_IMAGE.',
    );
  }
  const fetched = await fetchPackages({ archive, suite: SUITE, cache, note, ...recipe });
  const work = `${kept}.${process.pid}.work`;
  try {
    note('unpacking the packages');
    await mkdir(work, { recursive: true });
    const context = join(work, 'context');
    await cp(join(IMAGES, recipe.folder), context, { recursive: true });
    for (const [name, path] of Object.entries(recipe.files?.paths ?? {})) await cp(path, join(context, name));
    await unpack(fetched.files, join(work, 'tree'), join(context, 'rootfs.tar'));
    note('building the image');
    const labels = ['--label', `${RECIPE_LABEL}=${digest}`];
    await docker.run(['build', '--quiet', '--network', 'none', ...labels, '--tag', recipe.image, context]);
    note('keeping it in the cache');
    await docker.run(['save', '--output', join(work, 'image.tar'), recipe.image]);
    await rename(join(work, 'image.tar'), kept);
  } finally {
    await rm(work, { recursive: true, force: true });
    await fetched.discard();
  }
}

/**
 * @param {readonly string[]} packages
 * @param {string} tree
 * @param {string} archive
 */
async function unpack(packages, tree, archive) {
  const excludes = LEFT_OUT.map((pattern) => `--exclude=${pattern}`);
  const result = await tryCommand('bash', ['-euo', 'pipefail', '-c', UNPACK, 'unpack', tree, archive, ...excludes], {
    input: `${packages.join('\n')}\n`,
  });
  if (result.code === 0) return;
  throw new SetupFailure(
    `the packages of an image could not be unpacked: ${lastWords(result)}`,
    'see whether the disk that holds the cache has 1 GB free (SUREFOOT_CACHE names another place).',
  );
}
