/** Server-sent events (HTML standard, "Server-sent events"), as far as the gateway uses them: named events with JSON data. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true });
    // A carriage return at the end may be half of a line end.
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parse(block);
      if (event !== undefined) yield event;
    }
  }
}

function parse(block: string): ServerEvent | undefined {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === 'event') event = value ?? '';
    if (field === 'data') data.push(value ?? '');
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') };
}
