/**
 * Reads by id, asked for by many requests at once: what comes while a look is under way goes into the next one. A read is
 * never answered by a look that began before it came, and waits for nothing while the catalog is idle.
 */
export class Batched<Row extends { readonly id: string }> {
  readonly #read: (ids: readonly string[]) => Promise<readonly Row[]>;
  #waiting = new Map<string, PromiseWithResolvers<Row | undefined>>();
  #looking = false;

  constructor(read: (ids: readonly string[]) => Promise<readonly Row[]>) {
    this.#read = read;
  }

  find(id: string): Promise<Row | undefined> {
    const asked = this.#waiting.get(id);
    if (asked !== undefined) return asked.promise;
    const answer = Promise.withResolvers<Row | undefined>();
    this.#waiting.set(id, answer);
    // After everything that has arrived by now: requests that came together are read together.
    if (this.#waiting.size === 1 && !this.#looking) setImmediate(() => void this.#look());
    return answer.promise;
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#waiting.size > 0) {
      const asked = this.#takeWaiting();
      try {
        const rows = new Map((await this.#read([...asked.keys()])).map((row) => [row.id, row]));
        for (const [id, answer] of asked) answer.resolve(rows.get(id));
      } catch (error) {
        // Those who came meanwhile have waited for this catalog too, and would wait for it a second time.
        for (const answer of [...asked.values(), ...this.#takeWaiting().values()]) answer.reject(error);
      }
    }
    this.#looking = false;
  }

  #takeWaiting(): Map<string, PromiseWithResolvers<Row | undefined>> {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    return waiting;
  }
}
