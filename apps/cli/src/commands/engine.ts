import type { Command } from 'commander';
import type { Engine } from '../api.ts';
import { withJson, type JsonOption } from '../options.ts';
import { resolveEngine } from '../resolve.ts';
import { fields, show, table, timeText } from '../terminal.ts';
import type { Context } from './context.ts';

export function engineCommands(parent: Command, { client, terminal }: Context): void {
  const group = parent.command('engine').description('engines: PostgreSQL servers that environments share');

  withJson(group.command('list').description('all engines')).action(async ({ json }: JsonOption) => {
    const engines = await client().list<Engine>('/v1/admin/engines');
    show(terminal, json === true, engines, () =>
      table([
        ['NAME', 'HOST', 'STATE', 'PORT', 'GENERATION', 'ID'],
        ...engines.map((engine) => [
          engine.name,
          engine.host,
          engine.state,
          String(engine.port),
          String(engine.generation ?? '-'),
          engine.id,
        ]),
      ]),
    );
  });

  withJson(
    group.command('show').argument('[name-or-id]').description('one engine; may be left out where there is one'),
  ).action(async (nameOrId: string | undefined, { json }: JsonOption) => {
    const engine = await resolveEngine(client(), nameOrId);
    show(terminal, json === true, engine, () => engineText(engine));
  });
}

function engineText(engine: Engine): string {
  const pin: readonly (readonly [string, string])[] = Object.entries(engine.pin ?? {}).map(([name, value]) => [
    `pin ${name}`,
    String(value),
  ]);
  return fields({
    name: engine.name,
    id: engine.id,
    host: engine.host,
    state: engine.state,
    'waiting for': engine.waitingFor,
    image: engine.image,
    port: engine.port,
    generation: engine.generation ?? undefined,
    'rule generation': engine.ruleGeneration ?? undefined,
    ...Object.fromEntries(pin),
    extensions: engine.extensions.length === 0 ? undefined : engine.extensions.join(', '),
    created: timeText(engine.createdAt),
  });
}
