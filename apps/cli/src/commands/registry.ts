import type { Command } from 'commander';
import type { Registry } from '../api.ts';
import { readSecret } from '../input.ts';
import { withJson, type JsonOption } from '../options.ts';
import { printable, show, table } from '../terminal.ts';
import type { Context } from './context.ts';

const REGISTRIES = '/v1/admin/registries';

export function registryCommands(parent: Command, { client, terminal }: Context): void {
  const group = parent.command('registry').description('registries that ask for a password when an image is pulled');

  withJson(group.command('list').description('all registries with credentials')).action(
    async ({ json }: JsonOption) => {
      const registries = await client().list<Registry>(REGISTRIES);
      show(terminal, json === true, registries, () =>
        table([
          ['SERVER', 'USERNAME', 'SINCE'],
          ...registries.map(({ server, username, createdAt }) => [server, username, createdAt]),
        ]),
      );
    },
  );

  const add = group
    .command('add')
    .argument('<server>', 'as images name it: docker.io, registry.example.com:5000')
    .description('give its username and password, in place of earlier ones');
  withJson(add)
    .requiredOption('--username <name>', 'who pulls')
    .requiredOption('--password-file <file>', 'a file with the password, - for standard input')
    .action(async (server: string, { username, passwordFile, json }: AddOptions) => {
      const password = await readSecret(terminal, passwordFile);
      const made = await client().post<Registry>(REGISTRIES, { server, username, password });
      show(terminal, json === true, made, () => printable(`images of ${made.server} are pulled as ${made.username}`));
    });

  withJson(group.command('remove').argument('<server>').description('forget its username and password')).action(
    async (server: string, { json }: JsonOption) => {
      const removed = await client().delete<Registry>(`${REGISTRIES}/${encodeURIComponent(server)}`);
      show(terminal, json === true, removed, () => printable(`nothing is known of ${removed.server} any more`));
    },
  );
}

interface AddOptions extends JsonOption {
  readonly username: string;
  readonly passwordFile: string;
}
