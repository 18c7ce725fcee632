import type { Mark } from '#kernel';
import { markLabels } from '#kernel';

/** Whether labels carry exactly this mark. A thing with our name and other labels is somebody else's. */
export function carriesMark(labels: Readonly<Record<string, string>>, mark: Mark): boolean {
  return Object.entries(markLabels(mark)).every(([label, value]) => labels[label] === value);
}

/** Whether it is this installation's thing of this kind and id; the token may be of any attempt. */
export function isOurs(labels: Readonly<Record<string, string>>, mark: Omit<Mark, 'token'>): boolean {
  return carriesMark(labels, { ...mark, token: labels['surefoot.token'] ?? '' });
}
