/** A pass looks at the catalog and brings the world closer to it. It takes no input, so hint and timer run the same path. */
export interface Pass {
  readonly name: string;
  /** Milliseconds between the end of one run and the next, when no hint comes. */
  readonly intervalMs: number;
  /** One run. Ends by itself in bounded time, whatever does not answer. @throws when it could not do its work */
  run(): Promise<void>;
}
