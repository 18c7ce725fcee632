import type { LogEvent } from '#broker';

/** Server-sent events (HTML standard): JSON has no line ends of its own, so each is one line of data. */
export async function* serverEvents(log: AsyncIterable<LogEvent>): AsyncGenerator<string> {
  for await (const event of log) yield toText(event);
}

function toText(event: LogEvent): string {
  switch (event.type) {
    case 'alive':
      return ':\n\n';
    case 'lines':
      return event.lines.map((line) => named('line', line)).join('');
    case 'gap':
      return named('gap', { missing: event.missing });
    case 'end':
      return named('end', { reason: event.reason, truncated: event.truncated });
    default:
      return event satisfies never;
  }
}

function named(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
