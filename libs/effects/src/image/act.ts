/**
 * An image, present on the host: pulled where it is not. Harmless: an image is content under its digest, and is never
 * changed. Every failure is a known one, since nothing else goes by an image than its id.
 */
import type { ImageInfo, PullProgress } from '#docker';
import { isDaemonError } from '#docker';
import type { Act, ActContext, ActResult } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';

const PROGRESS_INTERVAL_MS = 1_000;

export const act: Act<'image'> = (context, { image: reference, serviceId }) =>
  withDaemon(context, 'image', async (daemon, time) => {
    const found = (image: ImageInfo): ActResult =>
      hasDigest(image, reference)
        ? applied({
            imageId: image.id,
            digest: repoDigest(image, reference) ?? null,
            ...(serviceId === undefined ? {} : { serviceId }),
          })
        : refused('image_unavailable', `what is on the host as ${reference} does not have that digest`);
    const present = await daemon.image(reference);
    if (present !== undefined) return found(present);
    if (IMAGE_ID.test(reference))
      return refused('image_unavailable', `image ${reference} is not on the host, and an id cannot be pulled`);
    const credentials = context.secrets.registry;
    try {
      await daemon.pull(withTag(reference), {
        deadlineMs: time.left(),
        ...(credentials === undefined ? {} : { credentials }),
        onProgress: oncePerSecond((progress) => context.progress(`pulling ${reference}: ${megabytes(progress)}`)),
      });
    } catch (error) {
      if (!isDaemonError(error) || error.kind === 'unreachable') throw error;
      // The daemon itself broke off, with time left to ask it once more: that says nothing about the image.
      if (error.kind === 'lost' && (await time.pause())) throw error;
      const said = withoutPassword(error.message, context);
      return refused('image_unavailable', `image ${reference} is not on the host, and pulling it failed: ${said}`);
    }
    // What the registry called it does not count: the id of what is here now does (FIELD-CASES B059, B076).
    const pulled = await daemon.image(reference);
    return pulled === undefined
      ? refused('image_unavailable', `image ${reference} is not on the host after it was pulled`)
      : found(pulled);
  });

const IMAGE_ID = /^sha256:[0-9a-f]{64}$/;

/** Without one the daemon would pull every tag there is. */
function withTag(reference: string): string {
  const lastPart = reference.slice(reference.lastIndexOf('/') + 1);
  return lastPart.includes(':') || lastPart.includes('@') ? reference : `${reference}:latest`;
}

function hasDigest({ repoDigests }: ImageInfo, reference: string): boolean {
  const at = reference.indexOf('@');
  return at < 0 || repoDigests.some((digest) => digest.endsWith(reference.slice(at)));
}

/** Under the repository that was asked for; the same content can be known under several. */
function repoDigest({ repoDigests }: ImageInfo, reference: string): string | undefined {
  const wanted = repository(reference);
  return repoDigests.find((digest) => repository(digest) === wanted) ?? repoDigests[0];
}

/** As the daemon shows it: without the names that it adds to a short one. */
function repository(reference: string): string {
  const [named = ''] = reference.split('@');
  const lastPart = named.lastIndexOf('/') + 1;
  const tag = named.indexOf(':', lastPart);
  return (tag < 0 ? named : named.slice(0, tag)).replace(/^(index\.)?docker\.io\//, '').replace(/^library\//, '');
}

function megabytes({ doneBytes, totalBytes }: PullProgress): string {
  const mega = (bytes: number): number => Math.ceil(bytes / 1_000_000);
  return `${mega(doneBytes)} of ${mega(totalBytes)} MB`;
}

function oncePerSecond<T>(tell: (value: T) => void): (value: T) => void {
  let last = -Infinity;
  return (value) => {
    const now = performance.now();
    if (now - last < PROGRESS_INTERVAL_MS) return;
    last = now;
    tell(value);
  };
}

/** A registry says in its own words why it refuses, and the daemon passes them on. */
function withoutPassword(text: string, { secrets }: ActContext): string {
  const password = secrets.registry?.password ?? '';
  return password === '' ? text : text.replaceAll(password, '…');
}
