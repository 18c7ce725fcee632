/**
 * Our mark on a thing: installation, kind, id and token (DESIGN §1). One text form, used as a comment in PostgreSQL and
 * as a header in files; Docker carries the same four as labels. A mark is compared whole: only exact identity is proof.
 */

import { isUuid } from './ids.ts';

const MARK_KINDS = ['environment', 'engine', 'service', 'placeholder', 'network', 'volume'] as const;

export interface Mark {
  readonly installation: string;
  readonly kind: (typeof MARK_KINDS)[number];
  readonly id: string;
  readonly token: string;
}

export function markText(mark: Mark): string {
  return `surefoot installation=${mark.installation} kind=${mark.kind} id=${mark.id} token=${mark.token}`;
}

const MARK = /^surefoot installation=([0-9a-f-]{36}) kind=([a-z]+) id=([0-9a-f-]{36}) token=([0-9a-f-]{36})$/;

/** The mark that a comment or header holds; undefined when it is somebody else's text, or none. */
export function parseMark(text: string | null): Mark | undefined {
  const found = text === null ? null : MARK.exec(text);
  if (found === null) return undefined;
  const [, installation = '', kindText = '', id = '', token = ''] = found;
  const kind = MARK_KINDS.find((one) => one === kindText);
  return kind !== undefined && [installation, id, token].every(isUuid) ? { installation, kind, id, token } : undefined;
}

/** The labels that everything made in Docker carries (DESIGN §9). */
export function markLabels(mark: Mark): Record<string, string> {
  return {
    'surefoot.installation': mark.installation,
    'surefoot.kind': mark.kind,
    'surefoot.id': mark.id,
    'surefoot.token': mark.token,
  };
}
