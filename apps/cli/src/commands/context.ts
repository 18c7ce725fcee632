import { Follower, type Wait } from '../follow-operation.ts';
import type { RestClient } from '../rest-client.ts';
import type { Terminal } from '../terminal.ts';

/** What every command works with. */
export interface Context {
  readonly terminal: Terminal;
  readonly env: NodeJS.ProcessEnv;
  /** @throws CommandFailure when there is nothing that says where the gateway is */
  readonly client: () => RestClient;
}

/** @param json then nobody reads along */
export function follower({ terminal }: Context, client: RestClient, wait: Wait, json: boolean | undefined): Follower {
  return new Follower(client, terminal, wait, json !== true);
}
