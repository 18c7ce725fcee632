import type { Daemon } from '#docker';
import { isDaemonError } from '#docker';

const LINES = 12;
const MAX_CHARACTERS = 1_000;

/** ECMA-48, section 5.4: a control sequence. */
const COLOUR = new RegExp(String.raw`\x1b\[[0-9;?]*[A-Za-z]`, 'g');

/**
 * What a service said last, in one line, after a colon; nothing when it said nothing.
 * @param hide takes its secrets out
 */
export async function lastLines(daemon: Daemon, containerId: string, hide: (text: string) => string): Promise<string> {
  try {
    const text = hide((await daemon.logTail(containerId, LINES)).join('\n'));
    // Colours and other control characters are for a terminal of its own.
    const lines = text
      .replaceAll(COLOUR, '')
      .split('\n')
      .map((line) => line.replaceAll(/\p{Cc}+/gu, ' ').trim())
      .filter((line) => line !== '')
      .slice(-LINES);
    return lines.length === 0 ? '; it said nothing' : `; it said last: ${endOf(lines.join(' | '))}`;
  } catch (error) {
    if (!isDaemonError(error)) throw error;
    return `; what it said cannot be read: ${error.message}`;
  }
}

/** The end of it says why. */
function endOf(text: string): string {
  const characters = Array.from(text);
  return characters.length <= MAX_CHARACTERS ? text : `…${characters.slice(1 - MAX_CHARACTERS).join('')}`;
}
