/** The host's age record, `host/epoch` (DESIGN §3, "Age"): written durably after each claim, before its first receipt. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { AgeRecord } from '#protocol';
import { isUuid } from '#kernel';
import { removeTemporaries, replaceFile } from './durable.ts';
import { UnreadableRecord } from './records.ts';

/** @returns undefined only when there is no such file. */
export function readEpoch(path: string): AgeRecord | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new UnreadableRecord(path, 'it cannot be opened', { cause });
  }
  let found: Partial<AgeRecord> | null;
  try {
    found = JSON.parse(text) as Partial<AgeRecord> | null;
  } catch (cause) {
    throw new UnreadableRecord(path, 'it is not JSON', { cause });
  }
  const { identity, claimNumber } = found ?? {};
  if (
    typeof identity !== 'string' ||
    !isUuid(identity) ||
    typeof claimNumber !== 'number' ||
    !Number.isSafeInteger(claimNumber) ||
    claimNumber < 0
  )
    throw new UnreadableRecord(path, 'it holds no identity and claim number');
  return { identity, claimNumber };
}

/** What a killed process left of one that was never in force. Only under the host lock. */
export function tidyEpoch(path: string): void {
  removeTemporaries(dirname(path));
}

export function writeEpoch(path: string, record: AgeRecord): void {
  replaceFile(path, `${JSON.stringify({ identity: record.identity, claimNumber: record.claimNumber })}\n`);
}
