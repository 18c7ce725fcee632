/**
 * Reads by id, asked for by many requests at once: what comes while a look is under way goes into the next one. A read is
 * never answered by a look that began before it came, and waits for nothing while the catalog is idle.
 */
export class Batched<Row extends { readonly id: string }> {
  readonly #read: (ids: readonly string[]) => Promise<readonly Row[]>;
  #waiting = new Map<string, PromiseWithResolvers<Row | undefined>>();
  #underWay = 0;

  constructor(read: (ids: readonly string[]) => Promise<readonly Row[]>) {
    this.#read = read;
  }

  find(id: string): Promise<Row | undefined> {
    const asked = this.#waiting.get(id);
    if (asked !== undefined) return asked.promise;
    const answer = Promise.withResolvers<Row | undefined>();
    this.#waiting.set(id, answer);
    // After everything that has arrived by now: requests that came together are read together.
    if (this.#waiting.size === 1) setImmediate(() => void this.#look());
    return answer.promise;
  }

  async #look(): Promise<void> {
    const asked = this.#waiting;
    if (asked.size === 0 || this.#underWay >= LOOKS_MAX) return;
    this.#waiting = new Map();
    this.#underWay += 1;
    try {
      const rows = new Map((await this.#read([...asked.keys()])).map((row) => [row.id, row]));
      for (const [id, answer] of asked) answer.resolve(rows.get(id));
    } catch (error) {
      for (const answer of asked.values()) answer.reject(error);
    } finally {
      this.#underWay -= 1;
    }
    void this.#look();
  }
}

/** One look at work and one on its way keep both the catalog and this process busy. */
const LOOKS_MAX = 2;
