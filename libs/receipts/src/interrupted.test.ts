/** Publishing and consuming, ended or failing at every single call (B032, B034): a record is whole or absent, always. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { CallFault } from '#testing';
import { nodeChild, SHORT_WRITE_BYTES, sourceUrl, waitUntil, watchedFileCalls } from '#testing';
import { isTemporary } from './durable.ts';
import { RecordFolders } from './index.ts';

/** Each test starts processes, on a machine that may be busy. */
const TIME_LIMIT_MS = 30_000;

const EFFECT = '5f0f7a54-2d5c-4f3b-9d3c-1b2f64f0a001';
const ID = '5f0f7a54-2d5c-4f3b-9d3c-1b2f64f0a002';
const RECEIPT = {
  version: 1,
  installation: ID,
  host: 'local',
  jobId: ID,
  operationId: ID,
  claimId: ID,
  attempt: 1,
  claimNumber: 1,
  effectId: EFFECT,
  kind: 'roles',
  resource: 'x'.repeat(400),
  token: ID,
  createdAt: '2026-01-01T00:00:00.000Z',
} as const;
const WITNESS = {
  version: 1,
  claimId: ID,
  effectId: EFFECT,
  token: ID,
  outcome: 'applied',
  facts: {},
  createdAt: '2026-01-01T00:00:00.000Z',
} as const;

class Place {
  readonly folder = mkdtempSync(join(base, 'place-'));
  readonly receipts = join(this.folder, 'receipts');
  readonly witnesses = join(this.folder, 'witnesses');
  readonly records: RecordFolders;

  constructor() {
    for (const one of [this.receipts, this.witnesses]) mkdirSync(one);
    this.records = new RecordFolders(this);
  }

  get receiptPath(): string {
    return join(this.receipts, `${EFFECT}.json`);
  }

  /** Names that a reader of records would look at, of receipts and of witnesses. */
  get visible(): readonly [readonly string[], readonly string[]] {
    const named = (folder: string): readonly string[] => readdirSync(folder).filter((name) => !isTemporary(name));
    return [named(this.receipts), named(this.witnesses)];
  }

  get temporaries(): number {
    return [this.receipts, this.witnesses].flatMap((folder) => readdirSync(folder)).filter(isTemporary).length;
  }
}

let base: string;
/** A receipt's bytes, for programs that know nothing but files. */
let content: string;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'interrupted-'));
  const place = new Place();
  place.records.publishReceipt(RECEIPT);
  content = readFileSync(place.receiptPath, 'utf8');
});
afterAll(() => {
  rmSync(base, { recursive: true });
});

const json = (value: unknown): string => JSON.stringify(value);
const DURABLE = `import { publishFile } from ${json(sourceUrl('libs/receipts/src/durable.ts'))};`;
const RECORDS = `import { RecordFolders } from ${json(sourceUrl('libs/receipts/src/index.ts'))};`;
const publish = (place: Place): string => `publishFile(${json(place.receiptPath)}, ${json(content)});`;

/** How often a receipt is written on, when every write is cut short. */
const writes = (): number => Math.ceil(Buffer.byteLength(content) / SHORT_WRITE_BYTES);

interface Told {
  /** Calls that touched the place, with the parts of names that are random left out. */
  readonly calls: readonly string[];
  readonly said: readonly string[];
  readonly signal: NodeJS.Signals | null;
}

async function run(place: Place, source: string, fault?: CallFault): Promise<Told> {
  const child = nodeChild(source, { preload: watchedFileCalls(place.folder, fault) });
  const { signal, errors } = await child.ended;
  expect(errors).toBe('');
  const called = child.lines.filter((line) => line.startsWith('call '));
  const calls = called.map((line) =>
    line
      .slice('call '.length)
      .replace(/\.writing-[0-9a-f-]+/, 'TEMPORARY')
      .replace(EFFECT, 'EFFECT'),
  );
  return { calls, said: child.lines.filter((line) => !line.startsWith('call ')), signal };
}

describe('publishing', () => {
  test(
    'writes and syncs the file, links it to its name, and syncs the folder, in this order and before it returns (invariant 1)',
    async () => {
      const place = new Place();
      const { calls, said } = await run(place, `${DURABLE} ${publish(place)} console.log('returned');`);
      expect(said).toEqual(['returned']);
      expect(calls).toEqual([
        'openSync receipts/TEMPORARY',
        // Writes are cut short on purpose, and gone on with.
        ...Array.from({ length: writes() }, () => 'writeSync receipts/TEMPORARY'),
        'fsyncSync receipts/TEMPORARY',
        'closeSync receipts/TEMPORARY',
        'linkSync receipts/EFFECT.json',
        'unlinkSync receipts/TEMPORARY',
        'openSync receipts',
        'fsyncSync receipts',
        'closeSync receipts',
      ]);
      expect(place.records.readReceipts()).toEqual([RECEIPT]);
    },
    TIME_LIMIT_MS,
  );

  test(
    'B032: killed after any of its calls, it leaves the whole receipt or none',
    async () => {
      const before = new Place();
      const { calls } = await run(before, `${DURABLE} ${publish(before)}`);
      const killed = await Promise.all(
        calls.map(async (call, index) => {
          const place = new Place();
          const told = await run(place, `${DURABLE} ${publish(place)}`, { nth: index + 1, does: 'kill-after' });
          expect([told.signal, told.calls.at(-1)]).toEqual(['SIGKILL', call]);
          return {
            call: call.split(' ')[0],
            found: place.records.readReceipts(),
            temporaries: place.temporaries,
            place,
          };
        }),
      );
      const linked = killed.findIndex(({ call }) => call === 'linkSync');
      const unlinked = killed.findIndex(({ call }) => call === 'unlinkSync');
      killed.forEach(({ found, temporaries }, index) => {
        expect([index, found]).toEqual([index, index < linked ? [] : [RECEIPT]]);
        expect([index, temporaries]).toEqual([index, index < unlinked ? 1 : 0]);
      });
      for (const { place, found } of killed) {
        place.records.tidy();
        expect([place.temporaries, place.records.readReceipts()]).toEqual([0, found]);
      }
    },
    TIME_LIMIT_MS,
  );

  test.each(['ENOSPC', 'EIO'])(
    'B034: when a call fails with %s, whichever it is, it throws, leaves the whole receipt or none, and works once there is space again',
    async (code) => {
      const calls = 8 + writes();
      const places = Array.from({ length: calls + 1 }, () => new Place());
      const source = `${DURABLE}
        const attempt = (work) => { try { work(); console.log('done'); } catch (error) { console.log('failed ' + error.code); } };
        ${places.map((place, index) => `setFileFault({ nth: ${index + 1}, does: 'fail', code: ${json(code)} }); attempt(() => { ${publish(place)} });`).join('\n')}`;
      const child = nodeChild(source, { preload: watchedFileCalls(base) });
      expect((await child.ended).errors).toBe('');
      const said = child.lines.filter((line) => !line.startsWith('call '));
      // One more than it has calls: the last one meets no fault. None that met one was reported as published.
      expect(said).toEqual([...Array.from({ length: calls }, () => `failed ${code}`), 'done']);
      const found = places.map((place) => place.records.readReceipts().length);
      expect(new Set(found)).toEqual(new Set([0, 1]));
      places.forEach((place, index) => {
        place.records.tidy();
        if (found[index] === 0) place.records.publishReceipt(RECEIPT);
        expect(place.records.readReceipts()).toEqual([RECEIPT]);
        expect(place.temporaries).toBe(0);
      });
    },
    TIME_LIMIT_MS,
  );

  test(
    'B032: a file size limit that ends the process in the middle of a write leaves no record',
    async () => {
      const place = new Place();
      const large = json('x'.repeat(100_000));
      const child = nodeChild(
        `${DURABLE} publishFile(${json(place.receiptPath)}, ${large}); console.log('returned');`,
        {
          under: ['sh', '-c', 'ulimit -c 0; ulimit -f 2; exec "$@"', 'sh'],
        },
      );
      const { signal, code } = await child.ended;
      expect(signal === 'SIGXFSZ' || code !== 0).toBe(true);
      expect(child.lines).toEqual([]);
      expect([place.temporaries, place.visible]).toEqual([1, [[], []]]);
    },
    TIME_LIMIT_MS,
  );
});

describe('consuming', () => {
  const consume = ({ receipts, witnesses }: Place): string =>
    `${RECORDS} new RecordFolders(${json({ receipts, witnesses })}).consume(${json(EFFECT)});`;
  const withBoth = (): Place => {
    const place = new Place();
    place.records.publishReceipt(RECEIPT);
    place.records.publishWitness(WITNESS);
    return place;
  };
  const CALLS = [
    'unlinkSync receipts/EFFECT.json',
    'openSync receipts',
    'fsyncSync receipts',
    'closeSync receipts',
    'unlinkSync witnesses/EFFECT.json',
    'openSync witnesses',
    'fsyncSync witnesses',
    'closeSync witnesses',
  ];

  test(
    'removes the receipt and syncs, then the witness and syncs: the reverse could leave a receipt that nothing explains',
    async () => {
      const place = withBoth();
      expect((await run(place, consume(place))).calls).toEqual(CALLS);
      expect(place.visible).toEqual([[], []]);
    },
    TIME_LIMIT_MS,
  );

  test(
    'killed after any of its calls, it has left no receipt without its witness, and what is left over is tidied',
    async () => {
      await Promise.all(
        CALLS.map(async (call, index) => {
          const place = withBoth();
          const told = await run(place, consume(place), { nth: index + 1, does: 'kill-after' });
          expect([told.signal, told.calls.at(-1)]).toEqual(['SIGKILL', call]);
          expect(place.visible).toEqual([[], index < 4 ? [`${EFFECT}.json`] : []]);
          place.records.tidy();
          expect(place.visible).toEqual([[], []]);
        }),
      );
    },
    TIME_LIMIT_MS,
  );
});

test(
  'B032: a process that publishes without end and is killed at a moment of nobody’s choosing leaves only whole records',
  async () => {
    const endless = ({ receipts, witnesses }: Place): string => `
      ${RECORDS}
      import { randomUUID } from 'node:crypto';
      const records = new RecordFolders(${json({ receipts, witnesses })});
      for (;;) {
        const effectId = randomUUID();
        records.publishReceipt({ ...${json(RECEIPT)}, effectId });
        records.publishWitness({ ...${json(WITNESS)}, effectId });
        console.log(effectId);
      }`;
    // Until kills have hit the middle of writing three times; most of them do.
    let inTheMiddle = 0;
    for (let round = 1; inTheMiddle < 3; round += 1) {
      expect(round).toBeLessThan(30);
      const place = new Place();
      const child = nodeChild(endless(place));
      await waitUntil('records are published', () => child.lines.length >= round, { intervalMs: 1 });
      child.process.kill('SIGKILL');
      await child.ended;
      const found = new Set(place.records.readReceipts().map((one) => one.effectId));
      for (const acknowledged of child.lines) {
        expect(found.has(acknowledged)).toBe(true);
        expect(place.records.readWitness(acknowledged)).toEqual({ ...WITNESS, effectId: acknowledged });
      }
      expect(found.size).toBeLessThanOrEqual(child.lines.length + 1);
      inTheMiddle += Number(place.temporaries > 0);
      place.records.tidy();
      expect([place.temporaries, place.records.readReceipts().length]).toEqual([0, found.size]);
    }
  },
  TIME_LIMIT_MS,
);
