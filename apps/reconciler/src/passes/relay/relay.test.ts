import { expect, test } from '@jest/globals';
import type { OutboxRow } from '#catalog';
import { Parked } from './parked.ts';
import { planMarks, toMessages } from './plan.ts';

const rows: OutboxRow[] = ['1', '2', '3'].map((id) => ({
  id,
  exchange: '',
  routing_key: `surefoot.jobs.h${id}`,
  message: { version: 1, jobId: id },
}));

test('a message carries the row as it was committed', () => {
  expect(toMessages(rows)[1]).toEqual({
    exchange: '',
    routingKey: 'surefoot.jobs.h2',
    body: { version: 1, jobId: '2' },
  });
});

test('only what the broker confirmed is marked', () => {
  expect(planMarks(rows, ['confirmed', 'unroutable', 'rejected'])).toEqual({
    published: ['1'],
    undelivered: ['2', '3'],
  });
  expect(planMarks(rows, [])).toEqual({ published: [], undelivered: ['1', '2', '3'] });
});

test('what no queue takes steps aside, comes up again, and is logged when it begins and ends', () => {
  const said: string[] = [];
  const log = (message: string): void => void said.push(message);
  let now = 0;
  const parked = new Parked({ info: log, warn: log, error: log }, () => now);
  parked.note({ published: [], undelivered: ['7'] });
  parked.note({ published: ['8'], undelivered: ['9'] });
  expect(parked.waiting).toEqual(['7', '9']);
  now = 5_000;
  expect(parked.waiting).toEqual([]);
  parked.note({ published: ['7', '9'], undelivered: [] });
  expect(said).toEqual(['outbox rows wait for a queue that takes them', 'no outbox row waits for a queue any more']);
});
