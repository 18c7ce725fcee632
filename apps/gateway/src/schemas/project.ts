import { z } from 'zod';
import { isUuid } from '#kernel';
import { PAGE_FIELDS } from '../http/page.ts';
import { onlyFields } from './fields.ts';
import { Id, Timestamp } from './text.ts';

export const ProjectToCreateSchema = onlyFields({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
      'a project name has 1 to 63 letters, digits, dots, hyphens and underscores, and begins and ends with a letter or digit',
    )
    // Both stand in the same place of an address.
    .refine((name) => !isUuid(name), 'a project name cannot look like an id')
    .meta({ examples: ['default'] }),
}).meta({ id: 'ProjectToCreate' });
export type ProjectToCreate = z.infer<typeof ProjectToCreateSchema>;

export const ProjectSchema = z.object({ id: Id, name: z.string(), createdAt: Timestamp }).meta({ id: 'Project' });
export type ProjectView = z.infer<typeof ProjectSchema>;

export const ProjectPageSchema = z
  .object({ items: z.array(ProjectSchema), nextCursor: z.string().nullable() })
  .meta({ id: 'ProjectPage' });

export const PageQuerySchema = onlyFields(PAGE_FIELDS);
export type PageQuery = z.infer<typeof PageQuerySchema>;
