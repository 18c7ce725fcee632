import { type Command, Option } from 'commander';
import type { Case } from '../api.ts';
import { withJson, type JsonOption } from '../options.ts';
import { fields, printable, reasonText, show, table, timeText } from '../terminal.ts';
import type { Context } from './context.ts';

export function caseCommands(parent: Command, { client, terminal }: Context): void {
  const group = parent.command('case').description('cases: what could not be proven, and waits for a decision');

  withJson(group.command('list').description('cases, newest first'))
    .addOption(new Option('--state <state>', 'open, closed or all').choices(['open', 'closed', 'all']).default('open'))
    .action(async ({ json, state }: JsonOption & { state: string }) => {
      const cases = await client().list<Case>('/v1/admin/cases', { state });
      show(terminal, json === true, cases, () =>
        table([
          ['KIND', 'STATE', 'OPENED', 'ID', 'REASON'],
          ...cases.map((found) => [found.kind, found.state, timeText(found.openedAt), found.id, found.reason.message]),
        ]),
      );
    });

  withJson(group.command('show').argument('<id>').description('one case, with its evidence')).action(
    async (id: string, { json }: JsonOption) => {
      const found = await client().get<Case>(`/v1/admin/cases/${encodeURIComponent(id)}`);
      show(terminal, json === true, found, () => caseText(found));
    },
  );
}

function caseText(found: Case): string {
  const text = fields({
    id: found.id,
    kind: found.kind,
    state: found.state,
    reason: reasonText(found.reason),
    host: found.host,
    engine: found.engineId ?? undefined,
    environment: found.environmentId ?? undefined,
    operation: found.operationId ?? undefined,
    effect: found.effectId ?? undefined,
    opened: timeText(found.openedAt),
    closed: found.closedAt ?? undefined,
  });
  return `${text}\nevidence\n${printable(JSON.stringify(found.evidence, null, 2))}`;
}
