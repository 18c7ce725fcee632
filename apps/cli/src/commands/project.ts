import type { Command } from 'commander';
import type { Project } from '../api.ts';
import { withJson, type JsonOption } from '../options.ts';
import { fields, show, table, timeText } from '../terminal.ts';
import type { Context } from './context.ts';

export function projectCommands(parent: Command, { client, terminal }: Context): void {
  const project = parent.command('project').description('projects: what environments belong to');

  withJson(project.command('list').description('projects that the key may see')).action(
    async ({ json }: JsonOption) => {
      const projects = await client().list<Project>('/v1/projects');
      show(terminal, json === true, projects, () =>
        table([
          ['NAME', 'CREATED', 'ID'],
          ...projects.map(({ name, createdAt, id }) => [name, timeText(createdAt), id]),
        ]),
      );
    },
  );

  withJson(project.command('create').argument('<name>').description('make a project')).action(
    async (name: string, { json }: JsonOption) => {
      const made = await client().post<Project>('/v1/projects', { name });
      show(terminal, json === true, made, () => projectText(made));
    },
  );

  withJson(project.command('show').argument('<name-or-id>').description('one project')).action(
    async (name: string, { json }: JsonOption) => {
      const found = await client().get<Project>(`/v1/projects/${encodeURIComponent(name)}`);
      show(terminal, json === true, found, () => projectText(found));
    },
  );
}

function projectText({ name, id, createdAt }: Project): string {
  return fields({ name, id, created: timeText(createdAt) });
}
