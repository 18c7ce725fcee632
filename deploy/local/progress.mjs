/**
 * What a person sees while set-up works: a line when a step ends, and for a step that takes longer than two seconds
 * also a line when that becomes clear, then a sign of life every five.
 */
const FIRST_SIGN_MS = 2_000;
const NEXT_SIGNS_MS = 5_000;

/**
 * @typedef {(detail: string) => void} Note says what the work is doing at the moment
 *
 * @typedef {object} Progress
 * @property {<T>(title: string, work: (note: Note) => Promise<T>) => Promise<T>} step
 * @property {<T>(title: string, work: (note: Note) => Promise<T>) => Promise<T>} wait the same without a last line, for
 *   a question whose answer is told otherwise
 * @property {(line: string) => void} say a line of its own
 */

/**
 * @param {(line: string) => void} [write]
 * @returns {Progress}
 */
export function progress(write = (line) => console.log(line)) {
  return {
    say: write,
    wait: (title, work) => withSigns(title, work, write),
    async step(title, work) {
      const startedAt = performance.now();
      const end = (/** @type {string} */ mark) => write(`  ${mark} ${title} (${secondsSince(startedAt)})`);
      try {
        const result = await withSigns(title, work, write);
        end('✓');
        return result;
      } catch (error) {
        end('✗');
        throw error;
      }
    },
  };
}

/**
 * @template T
 * @param {string} title
 * @param {(note: Note) => Promise<T>} work
 * @param {(line: string) => void} write
 */
async function withSigns(title, work, write) {
  const startedAt = performance.now();
  let detail = '';
  const sign = () => write(`  … ${title}${detail === '' ? '' : `: ${detail}`} (${secondsSince(startedAt)})`);
  /** @type {NodeJS.Timeout} */
  let timer = setTimeout(() => {
    sign();
    timer = setInterval(sign, NEXT_SIGNS_MS);
  }, FIRST_SIGN_MS);
  try {
    return await work((text) => {
      detail = text;
    });
  } finally {
    // One call clears either kind of timer.
    clearTimeout(timer);
  }
}

/** @param {number} startedAt */
function secondsSince(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
