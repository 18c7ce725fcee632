/** The engine's image, present on the host. Harmless: an image is content under its digest, and is never changed. */
import { isDaemonError } from '#docker';
import type { Act } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';

export const act: Act<'image'> = (context, { image: reference }) =>
  withDaemon(context, async (daemon, time) => {
    const present = await daemon.image(reference);
    if (present !== undefined) return applied({ imageId: present.id });
    try {
      await daemon.pull(withTag(reference), time.left());
    } catch (error) {
      if (!isDaemonError(error) || error.kind === 'unreachable') throw error;
      return refused(
        'image_unavailable',
        `image ${reference} is not on the host, and pulling it failed: ${error.message}`,
      );
    }
    // What the registry called it does not count: the id of what is here now does (FIELD-CASES B059, B076).
    const pulled = await daemon.image(reference);
    return pulled === undefined
      ? refused('image_unavailable', `image ${reference} is not on the host after it was pulled`)
      : applied({ imageId: pulled.id });
  });

/** Without one the daemon would pull every tag there is. */
function withTag(reference: string): string {
  const lastPart = reference.slice(reference.lastIndexOf('/') + 1);
  return lastPart.includes(':') || lastPart.includes('@') ? reference : `${reference}:latest`;
}
