/**
 * Names of images, as Docker reads them (the grammar of github.com/distribution/reference): `postgrest/postgrest:v12`,
 * `registry.example.com:5000/team/api@sha256:…`.
 */

const IMAGE_MAX_LENGTH = 255;

const HOST_PART = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const HOST = `(?:${HOST_PART}(?:\\.${HOST_PART})*|\\[[0-9a-f:]+\\])(?::[0-9]{1,5})?`;
const PATH_PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^(?:${HOST}/)?${PATH_PART}(?:/${PATH_PART})*$`);
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** What is wrong with the name of an image, as a caller reads it; undefined when it is one. */
export function imageFault(image: string): string | undefined {
  if (image.length > IMAGE_MAX_LENGTH) return `the name of an image has at most ${IMAGE_MAX_LENGTH} characters`;
  if (image.includes('://')) return 'an image is named without a scheme, such as registry.example.com/team/api:1.2';
  const [named = '', digest, ...more] = image.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest)))
    return 'a digest is written @sha256: and 64 hexadecimal digits in lower case';
  // A colon before the last slash begins the port of a registry.
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  const repository = colon < 0 ? named : named.slice(0, colon);
  if (colon >= 0 && !TAG.test(named.slice(colon + 1)))
    return 'a tag has 1 to 128 letters, digits, underscores, dots and hyphens, and begins with a letter, digit or underscore';
  if (/[A-Z]/.test(repository)) return 'registry and repository are written in lower case';
  if (!REPOSITORY.test(repository))
    return 'not the name of an image, such as team/api:1.2 or registry.example.com/team/api';
  // Docker takes 64 hexadecimal digits for an image's id, and refuses them as a name.
  if (/^[0-9a-f]{64}$/.test(repository)) return 'an image is named by its repository, not by an id';
  return undefined;
}

/** What Docker's own registry is called elsewhere: credentials under these would never be asked for. */
const DOCKER_HUB: readonly string[] = ['index.docker.io', 'registry-1.docker.io', 'hub.docker.com'];

/** What is wrong with the name of a registry, as images name it; undefined when it is one. */
export function registryFault(server: string): string | undefined {
  const rule = 'as images name it: docker.io, or registry.example.com:5000';
  if (server.includes('://')) return `a registry is named without a scheme, ${rule}`;
  if (server.length > IMAGE_MAX_LENGTH || !new RegExp(`^${HOST}$`).test(server))
    return `a registry is named in lower case ${rule}`;
  if (DOCKER_HUB.includes(server)) return 'images name this registry docker.io';
  // Of anything else Docker would think that it is the first part of a repository.
  if (!/[.:]/.test(server) && server !== 'localhost')
    return `a registry has a dot or a port in its name, or is localhost`;
  return undefined;
}
