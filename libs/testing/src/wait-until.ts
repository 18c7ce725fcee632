import { setTimeout } from 'node:timers/promises';

/**
 * Waits for a condition, never for a time.
 * @param what the sentence that the failure says was never true
 * @returns the first answer that is neither undefined nor false
 */
export async function waitUntil<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  { deadlineMs = 30_000, intervalMs = 20 } = {},
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const answer = await condition();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > giveUpAt) throw new Error(`not in ${deadlineMs} ms: ${what}`);
    await setTimeout(intervalMs);
  }
}
