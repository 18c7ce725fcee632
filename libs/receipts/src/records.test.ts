import { randomUUID } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Receipt, Witness } from '#protocol';
import {
  publishFile,
  readEpoch,
  RecordFolders,
  removeFile,
  replaceFile,
  UnreadableRecord,
  writeEpoch,
} from './index.ts';

let folder: string;
let receipts: string;
let witnesses: string;
let records: RecordFolders;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'records-'));
  receipts = join(folder, 'receipts');
  witnesses = join(folder, 'witnesses');
  for (const one of [receipts, witnesses]) mkdirSync(one, { mode: 0o700 });
  records = new RecordFolders({ receipts, witnesses });
});
afterEach(() => rmSync(folder, { recursive: true }));

const receipt = (changes: Partial<Receipt> = {}): Receipt => ({
  version: 1,
  installation: randomUUID(),
  host: 'local',
  jobId: randomUUID(),
  operationId: randomUUID(),
  claimId: randomUUID(),
  attempt: 1,
  claimNumber: 7,
  effectId: randomUUID(),
  kind: 'roles',
  resource: 'engine main / environment ümläut 日本',
  token: randomUUID(),
  createdAt: '2026-01-01T00:00:00.000Z',
  ...changes,
});
const witnessOf = (one: Receipt, changes: Partial<Witness> = {}): Witness => ({
  version: 1,
  claimId: one.claimId,
  effectId: one.effectId,
  token: one.token,
  outcome: 'applied',
  facts: { roleOids: { owner: 1 }, 10: 'b', 9: 'a' },
  createdAt: '2026-01-01T00:00:01.000Z',
  ...changes,
});
/** Truncating a file makes the file system flush it, which would make up most of the time. */
function rewrite(path: string, content: Buffer): void {
  rmSync(path);
  writeFileSync(path, content);
}
const receiptPath = (one: Receipt): string => join(receipts, `${one.effectId}.json`);
const witnessPath = (one: Receipt): string => join(witnesses, `${one.effectId}.json`);

describe('records', () => {
  test('what is published is read back as it was, and is nobody else’s to read', () => {
    const all = [receipt(), receipt({ kind: 'drop-roles' }), receipt({ attempt: 3 })];
    for (const one of all) records.publishReceipt(one);
    const byId = (one: Receipt, other: Receipt): number => one.effectId.localeCompare(other.effectId);
    expect([...records.readReceipts()].sort(byId)).toEqual(all.sort(byId));
    for (const one of all) expect(statSync(receiptPath(one)).mode & 0o777).toBe(0o600);
    expect(readdirSync(receipts)).toHaveLength(all.length);
  });

  test('a witness is read back with whatever facts and reason it has, and is absent only when there is none', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.option(fc.string()), (facts, message) => {
        const one = receipt();
        const witness = witnessOf(one, {
          outcome: message === null ? 'applied' : 'refused',
          facts: JSON.parse(JSON.stringify(facts)) as Witness['facts'],
          ...(message === null ? {} : { reason: { code: 'because', message } }),
        });
        expect(records.readWitness(one.effectId)).toBeUndefined();
        records.publishWitness(witness);
        expect(records.readWitness(one.effectId)).toEqual(witness);
      }),
      { numRuns: 40 },
    );
  });

  test('a receipt is never overwritten, and neither is a witness (invariant 3)', () => {
    const one = receipt();
    records.publishReceipt(one);
    records.publishWitness(witnessOf(one));
    const before = [readFileSync(receiptPath(one)), readFileSync(witnessPath(one))];
    expect(() => records.publishReceipt({ ...one, token: randomUUID() })).toThrow(
      expect.objectContaining({ code: 'EEXIST' }),
    );
    expect(() => records.publishReceipt(one)).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(() => records.publishWitness(witnessOf(one, { outcome: 'refused' }))).toThrow(
      expect.objectContaining({ code: 'EEXIST' }),
    );
    expect([readFileSync(receiptPath(one)), readFileSync(witnessPath(one))]).toEqual(before);
    // And nothing of the second tries is left.
    expect([readdirSync(receipts), readdirSync(witnesses)]).toEqual([
      [`${one.effectId}.json`],
      [`${one.effectId}.json`],
    ]);
  });

  test('not even through a symbolic link that stands in its place', () => {
    const one = receipt();
    const elsewhere = join(folder, 'elsewhere');
    symlinkSync(elsewhere, receiptPath(one));
    expect(() => records.publishReceipt(one)).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(readdirSync(folder)).not.toContain('elsewhere');
  });
});

describe('what cannot be trusted is never taken for absence (invariant 7)', () => {
  const contents = (one: Receipt): Buffer => {
    records.publishReceipt(one);
    return readFileSync(receiptPath(one));
  };

  test('B032: a receipt that is cut off anywhere, down to nothing, is unreadable, and the error names the file', () => {
    const one = receipt();
    const bytes = contents(one);
    // The last byte is the line's end, which says nothing.
    for (const length of [
      0,
      1,
      ...Array.from({ length: 40 }, (_, step) => Math.floor((step * bytes.length) / 40)),
      bytes.length - 2,
    ]) {
      rewrite(receiptPath(one), bytes.subarray(0, length));
      expect(() => records.readReceipts()).toThrow(UnreadableRecord);
      expect(() => records.readReceipts()).toThrow(receiptPath(one));
    }
  });

  test('a receipt with any of its bytes changed is either the same record or unreadable', () => {
    const one = receipt();
    const bytes = contents(one);
    let unreadable = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      rewrite(receiptPath(one), changed);
      try {
        expect(records.readReceipts()).toEqual([one]);
      } catch (error) {
        if (!(error instanceof UnreadableRecord)) throw error;
        unreadable += 1;
      }
    }
    expect(unreadable).toBeGreaterThan(bytes.length * 0.95);
  });

  test.each([
    ['nothing at all', ''],
    ['zeroes, as a file system leaves them after a power cut', '\0'.repeat(500)],
    ['a word', 'null'],
    ['a number', '7'],
    ['a text', '"receipt"'],
    ['a list', '[]'],
    ['an empty object', '{}'],
    ['an envelope around nothing', '{"record":null,"length":4,"sha256":"x"}'],
    ['an envelope around a text', '{"record":"a","length":3,"sha256":"x"}'],
    ['a record without an envelope', JSON.stringify({ version: 1, effectId: randomUUID() })],
  ])('%s is neither a receipt nor a witness nor an age record', (_what, text) => {
    const one = receipt();
    writeFileSync(receiptPath(one), text);
    writeFileSync(witnessPath(one), text);
    const epoch = join(folder, 'epoch');
    writeFileSync(epoch, text);
    expect(() => records.readReceipts()).toThrow(UnreadableRecord);
    expect(() => records.readWitness(one.effectId)).toThrow(UnreadableRecord);
    expect(() => readEpoch(epoch)).toThrow(UnreadableRecord);
  });

  test('a whole record under another name is unreadable: a copy stands for nothing', () => {
    const [one, other] = [receipt(), receipt()];
    records.publishReceipt(one);
    records.publishWitness(witnessOf(one));
    writeFileSync(receiptPath(other), readFileSync(receiptPath(one)));
    writeFileSync(witnessPath(other), readFileSync(witnessPath(one)));
    expect(() => records.readReceipts()).toThrow(/its name is not its effect id/);
    expect(() => records.readWitness(other.effectId)).toThrow(/its name is not its effect id/);
  });

  test('a receipt in the place of a witness, and a witness in the place of a receipt, are unreadable', () => {
    const one = receipt();
    records.publishReceipt(one);
    records.publishWitness(witnessOf(one));
    const [asReceipt, asWitness] = [readFileSync(receiptPath(one)), readFileSync(witnessPath(one))];
    writeFileSync(witnessPath(one), asReceipt);
    writeFileSync(receiptPath(one), asWitness);
    expect(() => records.readWitness(one.effectId)).toThrow(UnreadableRecord);
    expect(() => records.readReceipts()).toThrow(UnreadableRecord);
  });

  test.each<readonly [string, Partial<Record<keyof Receipt, unknown>>]>([
    ['a newer version', { version: 2 }],
    ['an effect kind that this program does not know', { kind: 'teleport' }],
    ['a name that every object has as its kind', { kind: 'toString' }],
    ['no claim', { claimId: undefined }],
    ['a token that is no id', { token: 'abc' }],
    ['an attempt that is no number', { attempt: '1' }],
    ['a claim number that is no number', { claimNumber: null }],
  ])('a receipt with %s is unreadable, although its checksum is right', (_what, changes) => {
    const one = receipt();
    records.publishReceipt({ ...one, ...changes } as Receipt);
    expect(() => records.readReceipts()).toThrow(UnreadableRecord);
  });

  test.each<readonly [string, Partial<Record<keyof Witness, unknown>>]>([
    ['an outcome that is not known', { outcome: 'unknown' }],
    ['no outcome', { outcome: undefined }],
    ['no facts', { facts: undefined }],
    ['no token', { token: undefined }],
    ['another version', { version: 0 }],
  ])('a witness with %s is unreadable, although its checksum is right', (_what, changes) => {
    const one = receipt();
    records.publishWitness({ ...witnessOf(one), ...changes } as Witness);
    expect(() => records.readWitness(one.effectId)).toThrow(UnreadableRecord);
  });

  test.each(['notes.txt', '.hidden', 'receipt.json.bak', 'x.json'])(
    'a file %s that is no record of ours stops everything, and is named',
    (name) => {
      records.publishReceipt(receipt());
      writeFileSync(join(receipts, name), 'whatever');
      expect(() => records.readReceipts()).toThrow(new RegExp(`${name}.* cannot be read as a record`));
    },
  );

  test('so does a folder, and a link that leads nowhere', () => {
    mkdirSync(join(receipts, 'folder.json'));
    expect(() => records.readReceipts()).toThrow(UnreadableRecord);
    rmSync(join(receipts, 'folder.json'), { recursive: true });
    symlinkSync('/nowhere', join(receipts, 'link.json'));
    expect(() => records.readReceipts()).toThrow(UnreadableRecord);
  });

  test('a folder that is gone is an error, not an empty one', () => {
    rmSync(receipts, { recursive: true });
    expect(() => records.readReceipts()).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  });
});

describe('consuming and tidying', () => {
  test('consuming removes receipt and witness, and is harmless when repeated', () => {
    const [one, other] = [receipt(), receipt()];
    for (const each of [one, other]) {
      records.publishReceipt(each);
      records.publishWitness(witnessOf(each));
    }
    for (let round = 0; round < 2; round += 1) records.consume(one.effectId);
    expect(records.readReceipts()).toEqual([other]);
    expect(records.readWitness(one.effectId)).toBeUndefined();
    expect(records.readWitness(other.effectId)).toEqual(witnessOf(other));
  });

  test('what a killed process was still writing is no record, and is tidied away; records are not', () => {
    const one = receipt();
    records.publishReceipt(one);
    records.publishWitness(witnessOf(one));
    for (const place of [receipts, witnesses]) writeFileSync(join(place, `.writing-${randomUUID()}`), '{"rec');
    expect(records.readReceipts()).toEqual([one]);
    records.tidy();
    expect([readdirSync(receipts), readdirSync(witnesses)]).toEqual([
      [`${one.effectId}.json`],
      [`${one.effectId}.json`],
    ]);
  });

  test('a witness whose receipt was consumed is tidied away; one whose receipt is there, readable or not, stays', () => {
    const [one, other, torn] = [receipt(), receipt(), receipt()];
    for (const each of [one, other, torn]) {
      records.publishReceipt(each);
      records.publishWitness(witnessOf(each));
    }
    removeFile(receiptPath(one));
    writeFileSync(receiptPath(torn), '');
    records.tidy();
    expect(readdirSync(witnesses).sort()).toEqual([other, torn].map((each) => `${each.effectId}.json`).sort());
  });
});

const IDENTITY = '2a41872a-e523-4690-8154-d81afd64c2d8';

describe('other durable files', () => {
  test('a file is replaced whole, with the mode it is asked for, and nothing is left beside it', () => {
    const path = join(folder, 'file');
    replaceFile(path, 'first', 0o640);
    replaceFile(path, 'second', 0o640);
    expect(readFileSync(path, 'utf8')).toBe('second');
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(readdirSync(folder).sort()).toEqual(['file', 'receipts', 'witnesses']);
  });

  test('publishing under a name that is taken changes nothing', () => {
    const path = join(folder, 'file');
    publishFile(path, 'first');
    expect(() => publishFile(path, 'second')).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(readFileSync(path, 'utf8')).toBe('first');
  });

  test('the age record reads back as it was, and is absent only when there is no such file', () => {
    const path = join(folder, 'epoch');
    expect(readEpoch(path)).toBeUndefined();
    fc.assert(
      fc.property(fc.uuid({ version: 4 }), fc.maxSafeNat(), (identity, claimNumber) => {
        writeEpoch(path, { identity, claimNumber });
        expect(readEpoch(path)).toEqual({ identity, claimNumber });
      }),
      { numRuns: 20 },
    );
    expect(() => readEpoch(join(path, 'below-a-file'))).toThrow(UnreadableRecord);
    expect(() => readEpoch(folder)).toThrow(UnreadableRecord);
  });

  test.each([
    ['an identity that is no id', { identity: 'x', claimNumber: 1 }],
    ['no identity', { claimNumber: 1 }],
    ['no claim number', { identity: IDENTITY }],
    ['a text as its claim number', { identity: IDENTITY, claimNumber: '1' }],
    ['half a claim', { identity: IDENTITY, claimNumber: 1.5 }],
    ['a claim number below nothing', { identity: IDENTITY, claimNumber: -1 }],
  ])('an age record with %s is unreadable', (_what, content) => {
    const path = join(folder, 'epoch');
    writeFileSync(path, JSON.stringify(content));
    expect(() => readEpoch(path)).toThrow(UnreadableRecord);
  });
});
