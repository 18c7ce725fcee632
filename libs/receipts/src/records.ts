/**
 * Receipts and witnesses on disk (DESIGN §3).
 *
 * Invariants held here: a receipt is durable before its effect starts (1), is never overwritten (3), and what cannot be
 * read is an error and never "no receipt" (7).
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUuid } from '#kernel';
import type { Receipt, Witness } from '#protocol';
import { isEffectKind, RECORD_VERSION } from '#protocol';
import { isTemporary, publishFile, removeFile, removeTemporaries } from './durable.ts';

/** A record that is there and cannot be trusted. It stops its host: nobody may take it for absence. */
export class UnreadableRecord extends Error {
  readonly path: string;
  constructor(path: string, why: string, options?: { cause?: unknown }) {
    super(`${path} cannot be read as a record: ${why}`, options);
    this.name = 'UnreadableRecord';
    this.path = path;
  }
}

export class RecordFolders {
  readonly #receipts: string;
  readonly #witnesses: string;

  /** @param folders absolute paths; both exist, mode 0700 */
  constructor(folders: { readonly receipts: string; readonly witnesses: string }) {
    this.#receipts = folders.receipts;
    this.#witnesses = folders.witnesses;
  }

  publishReceipt(receipt: Receipt): void {
    publishFile(this.#receiptPath(receipt.effectId), encode(receipt));
  }

  publishWitness(witness: Witness): void {
    publishFile(this.#witnessPath(witness.effectId), encode(witness));
  }

  /** Every receipt there is. @throws UnreadableRecord for anything in the folder that is not one */
  readReceipts(): readonly Receipt[] {
    return readdirSync(this.#receipts)
      .filter((name) => !isTemporary(name))
      .map((name) => {
        const path = join(this.#receipts, name);
        const receipt = asReceipt(path, decode(path));
        if (name !== `${receipt.effectId}.json`) throw new UnreadableRecord(path, 'its name is not its effect id');
        return receipt;
      });
  }

  /** @returns undefined only when there is no such file. */
  readWitness(effectId: string): Witness | undefined {
    const path = this.#witnessPath(effectId);
    let record: Untrusted;
    try {
      record = decode(path);
    } catch (error) {
      if (error instanceof UnreadableRecord && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT')
        return undefined;
      throw error;
    }
    const witness = asWitness(path, record);
    if (witness.effectId !== effectId) throw new UnreadableRecord(path, 'its name is not its effect id');
    return witness;
  }

  /** Only after the outcome has committed. The receipt goes first: a witness without a receipt is harmless, the reverse asks. */
  consume(effectId: string): void {
    removeFile(this.#receiptPath(effectId));
    removeFile(this.#witnessPath(effectId));
  }

  /** Removes what never became a record, and witnesses whose receipts are consumed. Only under the host lock. */
  tidy(): void {
    removeTemporaries(this.#receipts);
    removeTemporaries(this.#witnesses);
    const receipts = new Set(readdirSync(this.#receipts));
    for (const name of readdirSync(this.#witnesses)) if (!receipts.has(name)) removeFile(join(this.#witnesses, name));
  }

  #receiptPath(effectId: string): string {
    return join(this.#receipts, `${effectId}.json`);
  }

  #witnessPath(effectId: string): string {
    return join(this.#witnesses, `${effectId}.json`);
  }
}

/** A record whose bytes are as they were written; what it says has not been looked at. */
type Untrusted = Readonly<Record<string, unknown>>;

interface Envelope {
  readonly record?: unknown;
  /** Of the record's JSON text, in bytes. */
  readonly length?: unknown;
  readonly sha256?: unknown;
}

function encode(record: Receipt | Witness): string {
  const text = JSON.stringify(record);
  return `{"record":${text},"length":${Buffer.byteLength(text)},"sha256":"${digest(text)}"}\n`;
}

function decode(path: string): Untrusted {
  let envelope: Envelope | null;
  try {
    // A pipe would be waited for, and a link leads elsewhere: neither is what we published.
    if (!lstatSync(path).isFile()) throw new TypeError('it is not a file');
    envelope = JSON.parse(readFileSync(path, 'utf8')) as Envelope | null;
  } catch (cause) {
    throw new UnreadableRecord(path, 'it cannot be opened or is not JSON', { cause });
  }
  const record = envelope?.record;
  if (typeof record !== 'object' || record === null) throw new UnreadableRecord(path, 'it holds no record');
  // JSON.parse keeps the order of keys, so the text comes out again as it was written.
  const text = JSON.stringify(record);
  if (Buffer.byteLength(text) !== envelope?.length || digest(text) !== envelope.sha256)
    throw new UnreadableRecord(path, 'length or checksum differ');
  const { version } = record as Untrusted;
  if (version !== RECORD_VERSION)
    throw new UnreadableRecord(path, `version ${String(version)} is not one this program knows`);
  return record as Untrusted;
}

/** Whole, but perhaps another kind of record, or another program's: every field that something is decided by is there. */
function asReceipt(path: string, record: Untrusted): Receipt {
  const { kind, attempt, claimNumber } = record;
  if (typeof kind !== 'string' || !isEffectKind(kind))
    throw new UnreadableRecord(path, `unknown effect kind ${String(kind)}`);
  requireIds(path, record, ['installation', 'jobId', 'operationId', 'claimId', 'effectId', 'token']);
  if (!Number.isSafeInteger(attempt) || !Number.isSafeInteger(claimNumber))
    throw new UnreadableRecord(path, 'attempt or claim number are not numbers');
  return record as unknown as Receipt;
}

function asWitness(path: string, record: Untrusted): Witness {
  const { outcome, facts } = record;
  if (outcome !== 'applied' && outcome !== 'refused')
    throw new UnreadableRecord(path, `outcome ${String(outcome)} is not a known one`);
  requireIds(path, record, ['claimId', 'effectId', 'token']);
  if (typeof facts !== 'object' || facts === null) throw new UnreadableRecord(path, 'it holds no facts');
  return record as unknown as Witness;
}

function requireIds(path: string, record: Untrusted, fields: readonly string[]): void {
  for (const field of fields) {
    const value = record[field];
    if (typeof value !== 'string' || !isUuid(value)) throw new UnreadableRecord(path, `its ${field} is not an id`);
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
