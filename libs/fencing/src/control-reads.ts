/** What the control database says, read by the worker: nothing here changes anything. */
import type { AgeRecord } from '#protocol';
import type { Client } from '#postgres';

/** The engine's age record. @returns undefined when the control database holds none */
export async function readEngineAge(client: Client): Promise<AgeRecord | undefined> {
  const { rows } = await client.query<{ identity: string; claim_number: string }>(
    'select identity, claim_number from surefoot.identity',
  );
  const [row] = rows;
  return row === undefined ? undefined : { identity: row.identity, claimNumber: Number(row.claim_number) };
}

/** Which of these tokens were registered at the engine. */
export async function readKnownTokens(client: Client, tokens: readonly string[]): Promise<readonly string[]> {
  const { rows } = await client.query<{ token: string }>(
    'select token from surefoot.tokens where token = any ($1::uuid[])',
    [tokens],
  );
  return rows.map((row) => row.token);
}
