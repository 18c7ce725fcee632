/**
 * What a person sees while set-up works: a line when a step ends, and for a step that takes longer than two seconds
 * also a line when that becomes clear, then a sign of life every ten.
 */
const FIRST_SIGN_MS = 2_000;
const NEXT_SIGNS_MS = 10_000;

/**
 * @typedef {object} Progress
 * @property {<T>(title: string, work: (note: (detail: string) => void) => Promise<T>) => Promise<T>} step
 *   runs the work under a title; `note` says what it is doing at the moment
 * @property {(line: string) => void} say a line of its own
 */

/**
 * @param {(line: string) => void} [write]
 * @returns {Progress}
 */
export function progress(write = (line) => console.log(line)) {
  return {
    say: write,
    async step(title, work) {
      const startedAt = performance.now();
      let detail = '';
      const sign = () => write(`  … ${title}${detail === '' ? '' : `: ${detail}`} (${secondsSince(startedAt)})`);
      /** @type {NodeJS.Timeout} */
      let timer = setTimeout(() => {
        sign();
        timer = setInterval(sign, NEXT_SIGNS_MS);
      }, FIRST_SIGN_MS);
      try {
        const result = await work((text) => {
          detail = text;
        });
        write(`  ✓ ${title} (${secondsSince(startedAt)})`);
        return result;
      } catch (error) {
        write(`  ✗ ${title} (${secondsSince(startedAt)})`);
        throw error;
      } finally {
        // One call clears either kind of timer.
        clearTimeout(timer);
      }
    },
  };
}

/** @param {number} startedAt */
function secondsSince(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
