import type { AdminPlace, Client } from '#postgres';
import { abandon, connectAdmin } from '#postgres';

const READ_TIMEOUT_MS = 5_000;

/**
 * One connection per engine for the looks before each claim. It only reads, so unlike a guarded batch it may be used again;
 * after any error it is thrown away (a connection that was lost in mid-query never answers again, FIELD-CASES B031).
 */
export class WatchedConnection {
  #client: Promise<Client> | undefined;

  constructor(
    private readonly place: AdminPlace,
    private readonly database: string,
  ) {}

  async read<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const used = (this.#client ??= this.#open());
    try {
      return await work(await used);
    } catch (error) {
      this.#forget(used);
      used.then(abandon, () => undefined);
      throw error;
    }
  }

  close(): void {
    this.#client?.then(abandon, () => undefined);
    this.#client = undefined;
  }

  /** Two reads may fail on one client, and its end may come late: neither concerns the client that came after it. */
  #forget(client: Promise<Client>): void {
    if (this.#client === client) this.#client = undefined;
  }

  #open(): Promise<Client> {
    const opening = this.#connect();
    opening.then(
      (client) => client.once('end', () => this.#forget(opening)),
      () => undefined,
    );
    return opening;
  }

  async #connect(): Promise<Client> {
    const client = await connectAdmin(this.place, this.database, {
      statementTimeoutMs: READ_TIMEOUT_MS,
      applicationName: 'surefoot worker',
    });
    try {
      await client.query('set default_transaction_read_only = on');
    } catch (error) {
      abandon(client);
      throw error;
    }
    return client;
  }
}
