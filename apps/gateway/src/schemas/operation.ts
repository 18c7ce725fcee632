import { z } from 'zod';
import { EFFECT_OUTCOMES } from '#kernel';
import { isOperationKind, OPERATION_STATES, type OperationKind, OPERATIONS } from '#protocol';
import { PAGE_FIELDS } from '../http/page.ts';
import { onlyFields } from './fields.ts';
import { Id, Timestamp } from './text.ts';

const KINDS = Object.keys(OPERATIONS).filter(isOperationKind) as [OperationKind, ...OperationKind[]];

export const ReasonSchema = z.object({ code: z.string(), message: z.string() }).meta({ id: 'Reason' });

const EffectSchema = z
  .object({
    kind: z.string(),
    service: z.string().optional().meta({ description: 'Name of the service that it is about' }),
    outcome: z.enum(EFFECT_OUTCOMES),
    startedAt: Timestamp,
    settledAt: Timestamp.nullable(),
  })
  .meta({ id: 'Effect' });

export const OperationSchema = z
  .object({
    id: Id,
    kind: z.enum(KINDS),
    environmentId: Id.nullable(),
    environmentName: z.string().optional(),
    state: z.enum(OPERATION_STATES),
    stage: z.string().meta({ description: 'What it is at: the effect in hand, or the state' }),
    attempt: z.int(),
    effects: z.array(EffectSchema),
    reason: ReasonSchema.nullable(),
    progress: z.string().optional().meta({ description: 'How far the effect in hand is, for people' }),
    waitingFor: z.string().optional().meta({ description: 'Why it does not run yet' }),
    caseId: Id.optional().meta({ description: 'When blocked: the case that waits for a decision' }),
    createdAt: Timestamp,
    finishedAt: Timestamp.nullable(),
  })
  .meta({ id: 'Operation' });
export type OperationView = z.infer<typeof OperationSchema>;

export const OperationPageSchema = z
  .object({ items: z.array(OperationSchema), nextCursor: z.string().nullable() })
  .meta({ id: 'OperationPage' });

export const OperationQuerySchema = onlyFields({
  ...PAGE_FIELDS,
  environment: z.uuid().optional().meta({ description: 'Id of an environment' }),
  state: z.enum(OPERATION_STATES).optional(),
  kind: z.enum(KINDS).optional(),
});
export type OperationQuery = z.infer<typeof OperationQuerySchema>;
