/** Which methods an address has, for a request whose own method it has not (RFC 9110, 15.5.6). */
export class KnownRoutes {
  readonly #methods = new Map<string, Set<string>>();

  /** @param url as routed: `/v1/environments/:id` */
  add(method: string, url: string): void {
    const methods = this.#methods.get(url) ?? new Set();
    this.#methods.set(url, methods.add(method));
  }

  methodsOf(path: string): readonly string[] {
    const parts = path.split('/');
    const found = [...this.#methods]
      .filter(([url]) => matches(url.split('/'), parts))
      .flatMap(([, methods]) => [...methods]);
    return [...new Set(found)].sort();
  }
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((part, index) => (part.startsWith(':') ? path[index] !== '' : part === path[index]))
  );
}
