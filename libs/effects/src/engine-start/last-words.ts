import type { Daemon } from '#docker';

const LINES = 12;

/** What a container said last, in one line. Verifiers are no passwords, yet nobody needs them in a message. */
export async function lastWords(daemon: Daemon, containerId: string): Promise<string> {
  const lines = await daemon.logTail(containerId, LINES);
  return lines.join(' | ').replaceAll(/SCRAM-SHA-256\$[^\s']+/g, 'SCRAM-SHA-256$…');
}
