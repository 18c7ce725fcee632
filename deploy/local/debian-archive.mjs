import { access, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lastWords, tryCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';

/**
 * Packages from the distribution's archive, fetched into a folder of ours, without root and without touching what is
 * installed. Where the archive is, and how it is reached, is read from the machine's own apt: a user's mirror differs.
 */

/**
 * @typedef {object} Archive
 * @property {'Debian' | 'Ubuntu'} family
 * @property {string} codename of the machine's own release
 * @property {string} uri
 * @property {string} [securityUri]
 */

const KEYRINGS = {
  Debian: '/usr/share/keyrings/debian-archive-keyring.gpg',
  Ubuntu: '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
};

/**
 * @param {string} cache
 * @returns {Promise<Archive | undefined>} undefined on a machine without such an archive
 */
export async function findArchive(cache) {
  // apt only tells of what it has lists for, and a machine whose lists were never read has none; then we read them, in
  // a folder of ours. Most have.
  let targets = await indexTargets([]);
  if (parseTargets(targets).length === 0) {
    const folder = await makeAptFolder(join(cache, 'apt', 'machine'));
    await tryCommand('apt-get', [...aptOptions(folder, { ownSources: false }), '--quiet', 'update']);
    targets = await indexTargets(aptOptions(folder, { ownSources: false }));
  }
  return chooseArchive(parseTargets(targets));
}

/** @param {readonly string[]} options */
async function indexTargets(options) {
  const format = '$(ORIGIN)\t$(LABEL)\t$(CODENAME)\t$(REPO_URI)';
  const args = [...options, 'indextargets', '--format', format, 'Created-By: Packages'];
  return (await tryCommand('apt-get', args)).stdout;
}

/** @param {string} text */
export function parseTargets(text) {
  return text
    .split('\n')
    .map((line) => line.split('\t'))
    .flatMap(([origin, label, codename, uri]) =>
      origin !== undefined && label !== undefined && codename !== undefined && uri !== undefined
        ? [{ origin, label, codename, uri }]
        : [],
    );
}

/**
 * @param {ReturnType<typeof parseTargets>} targets
 * @returns {Archive | undefined}
 */
export function chooseArchive(targets) {
  for (const family of /** @type {const} */ (['Debian', 'Ubuntu'])) {
    const main = targets.find(
      ({ origin, label, codename }) => origin === family && label === family && !codename.includes('-'),
    );
    if (main === undefined) continue;
    const security = targets.find(({ label }) => label === `${family}-Security`);
    return {
      family,
      codename: main.codename,
      uri: main.uri,
      ...(security === undefined ? {} : { securityUri: security.uri }),
    };
  }
  return undefined;
}

/**
 * @param {Archive} archive
 * @param {string} suite a release's codename
 */
async function sourceLines({ family, uri, securityUri }, suite) {
  const keyring = KEYRINGS[family];
  const signed = (await access(keyring).then(
    () => true,
    () => false,
  ))
    ? `[signed-by=${keyring}] `
    : '';
  const parts = family === 'Ubuntu' ? 'main universe' : 'main';
  const lines = [`deb ${signed}${uri} ${suite} ${parts}`, `deb ${signed}${uri} ${suite}-updates ${parts}`];
  if (securityUri !== undefined) lines.push(`deb ${signed}${securityUri} ${suite}-security ${parts}`);
  return `${lines.join('\n')}\n`;
}

/** @param {string} folder */
async function makeAptFolder(folder) {
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
  return folder;
}

/**
 * @param {string} folder
 * @param {{ ownSources: boolean }} options
 */
function aptOptions(folder, { ownSources }) {
  const settings = {
    'Dir::State': folder,
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    ...(ownSources
      ? {
          'Dir::Etc::sourcelist': join(folder, 'sources.list'),
          'Dir::Etc::sourceparts': '/dev/null',
          // Pins of the machine's administrator speak about the machine's packages.
          'Dir::Etc::preferences': '/dev/null',
          'Dir::Etc::preferencesparts': '/dev/null',
        }
      : {}),
    'APT::Install-Recommends': '0',
    'Acquire::Languages': 'none',
    'Debug::NoLocking': '1',
    // As root apt would hand the fetching to a user who cannot write into our folder.
    'APT::Sandbox::User': 'root',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/**
 * Fetches packages with all that they need, except what is declared to be there already.
 *
 * @param {object} order
 * @param {Archive} order.archive
 * @param {string} order.suite
 * @param {string} order.cache
 * @param {readonly string[]} order.packages
 * @param {readonly string[]} [order.withheld] never fetched, and neither is what only they need
 * @param {(detail: string) => void} order.note
 * @returns {Promise<{ files: string[], discard: () => Promise<void> }>} the packages' files, in a folder to discard
 */
export async function fetchPackages({ archive, suite, cache, packages, withheld = [], note }) {
  await mkdir(join(cache, 'apt'), { recursive: true });
  const folder = await makeAptFolder(await mkdtemp(join(cache, 'apt', `${suite}-`)));
  const discard = () => rm(folder, { recursive: true, force: true });
  try {
    await writeFile(join(folder, 'sources.list'), await sourceLines(archive, suite));
    await writeFile(join(folder, 'status'), withheld.map(installedStanza(await architecture())).join('\n'));
    const options = [...aptOptions(folder, { ownSources: true }), '--quiet', '--yes'];
    note(`reading the package lists of ${suite}`);
    await apt([...options, 'update']);
    note(`fetching ${packages[0]} and what it needs`);
    await apt([...options, '--download-only', 'install', ...packages]);
    const archives = join(folder, 'cache', 'archives');
    const files = (await readdir(archives)).filter((name) => name.endsWith('.deb'));
    return { files: files.sort().map((name) => join(archives, name)), discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

/** @param {readonly string[]} args */
async function apt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  const result = await tryCommand('apt-get', args, { env });
  if (result.code === 0) return;
  throw new SetupFailure(
    `apt-get could not fetch packages: ${lastWords(result)}`,
    'see whether apt-get update works on this machine, then run this again.',
  );
}

/**
 * apt leaves out what it believes to be installed, and with it everything that only that would have needed.
 *
 * @param {string} arch
 */
function installedStanza(arch) {
  return (/** @type {string} */ name) =>
    [
      `Package: ${name}`,
      'Status: install ok installed',
      `Architecture: ${arch}`,
      'Multi-Arch: allowed',
      // Newer than any real one, so that every version that is asked for is satisfied.
      'Version: 99:0',
      'Maintainer: nobody',
      'Description: withheld',
      '',
    ].join('\n');
}

/** @returns {Promise<string>} Debian's name of this machine's architecture */
export async function architecture() {
  const printed = await tryCommand('dpkg', ['--print-architecture']);
  if (printed.code === 0) return printed.stdout.trim();
  return process.arch === 'x64' ? 'amd64' : process.arch;
}
