/** What the relay makes of the rows it took and of the broker's answers. */
import type { OutgoingMessage, PublishOutcome } from '#broker';
import type { OutboxRow } from '#catalog';

export function toMessages(rows: readonly OutboxRow[]): readonly OutgoingMessage[] {
  return rows.map(({ exchange, routing_key, message }) => ({ exchange, routingKey: routing_key, body: message }));
}

export interface Marks {
  /** Confirmed: to be marked. */
  readonly published: readonly string[];
  /** Answered, but not taken by any queue: they stay, and are tried again later. */
  readonly undelivered: readonly string[];
}

/** @param outcomes one per row, in order */
export function planMarks(rows: readonly OutboxRow[], outcomes: readonly PublishOutcome[]): Marks {
  const confirmed = rows.map((row, index) => ({ id: row.id, confirmed: outcomes[index] === 'confirmed' }));
  return {
    published: confirmed.filter((row) => row.confirmed).map((row) => row.id),
    undelivered: confirmed.filter((row) => !row.confirmed).map((row) => row.id),
  };
}
