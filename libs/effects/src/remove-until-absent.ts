import { isDaemonError } from '#docker';
import type { ActResult } from './contract.ts';
import { applied, refused, unknown } from './contract.ts';
import type { TimeLeft } from './daemon-act.ts';

/**
 * Only a successful listing without the thing is absence (FIELD-CASES B064). A removal may be repeated: the thing has an
 * identity that nothing else ever gets.
 * @param tell called with what is in the way, each time that it is something else
 */
export async function removeUntilAbsent(
  time: TimeLeft,
  isThere: () => Promise<boolean>,
  remove: () => Promise<void>,
  tell: (hindrance: string) => void = () => undefined,
): Promise<ActResult> {
  if (!(await isThere())) return applied({ alreadyAbsent: true });
  let hindrance = 'it is still listed';
  do {
    try {
      await remove();
    } catch (error) {
      // Gone meanwhile, in use, being removed already, or tried and failed: the listing tells, and time may help.
      if (!isDaemonError(error, 'absent', 'conflict', 'refused', 'failed')) throw error;
      if (error.message !== hindrance) tell(error.message);
      hindrance = error.message;
    }
    if (!(await isThere())) return applied();
  } while (await time.pause());
  return /in use|has active endpoints/i.test(hindrance)
    ? refused('in_use', hindrance)
    : unknown('still_there', `it could not be removed: ${hindrance}`);
}
