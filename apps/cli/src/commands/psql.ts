import type { Command } from 'commander';
import { Option } from 'commander';
import { TIERS, type Tier } from '#kernel';
import type { Login } from '../api.ts';
import { withProject, type ProjectOption } from '../options.ts';
import { runPsql } from '../psql-session.ts';
import { resolveEnvironment } from '../resolve.ts';
import type { Context } from './context.ts';

/** @param exitWith what psql exits with is what we exit with */
export function psqlCommand(parent: Command, { client, env }: Context, exitWith: (code: number) => void): void {
  withProject(parent.command('psql'))
    .description('psql in an environment; what follows -- is for psql')
    .argument('<name-or-id>')
    .argument('[args...]')
    .addOption(new Option('--tier <tier>', 'the login to use').choices(TIERS).default('app'))
    .action(async (nameOrId: string, args: readonly string[], { project, tier }: ProjectOption & { tier: Tier }) => {
      const rest = client();
      const { id } = await resolveEnvironment(rest, project, nameOrId);
      const { logins } = await rest.get<{ readonly logins: readonly Login[] }>(`/v1/environments/${id}/credentials`);
      const login = logins.find((candidate) => candidate.tier === tier);
      if (login === undefined) throw new TypeError(`the gateway showed no login of tier ${tier}`);
      exitWith(await runPsql(login, args, env));
    });
}
