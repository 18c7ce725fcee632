import { z } from 'zod';
import { ENGINE_STATES } from '#protocol';
import { PAGE_FIELDS } from '../http/page.ts';
import { onlyFields } from './fields.ts';
import { ReasonSchema } from './operation.ts';
import { Id, Timestamp } from './text.ts';

export const EngineSchema = z
  .object({
    id: Id,
    name: z.string(),
    host: z.string(),
    state: z.enum(ENGINE_STATES),
    image: z.string(),
    port: z.int(),
    extensions: z.array(z.string()),
    generation: z.int().nullable(),
    ruleGeneration: z.int().nullable(),
    pin: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'The exact identity that the engine has at present; null until it is made' }),
    waitingFor: z.string().optional(),
    createdAt: Timestamp,
  })
  .meta({ id: 'Engine' });
export type EngineView = z.infer<typeof EngineSchema>;

export const EnginePageSchema = z
  .object({ items: z.array(EngineSchema), nextCursor: z.string().nullable() })
  .meta({ id: 'EnginePage' });

export const CaseSchema = z
  .object({
    id: Id,
    kind: z.string(),
    state: z.enum(['open', 'closed']),
    host: z.string(),
    engineId: Id.nullable(),
    environmentId: Id.nullable(),
    operationId: Id.nullable(),
    effectId: Id.nullable(),
    reason: ReasonSchema,
    evidence: z.record(z.string(), z.unknown()),
    openedAt: Timestamp,
    closedAt: Timestamp.nullable(),
  })
  .meta({ id: 'Case' });
export type CaseView = z.infer<typeof CaseSchema>;

export const CasePageSchema = z
  .object({ items: z.array(CaseSchema), nextCursor: z.string().nullable() })
  .meta({ id: 'CasePage' });

export const CaseQuerySchema = onlyFields({
  ...PAGE_FIELDS,
  state: z.enum(['open', 'closed', 'all']).optional().meta({ description: '`open` if left out' }),
});
export type CaseQuery = z.infer<typeof CaseQuerySchema>;
