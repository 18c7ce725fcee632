import { z } from 'zod';
import { PROBLEMS } from '#kernel';
import { Id } from './text.ts';

const FieldFault = z
  .object({
    field: z
      .string()
      .meta({ description: 'Path into the body, such as `services[0].name`; empty for the body itself' }),
    code: z.string(),
    message: z.string(),
  })
  .meta({ id: 'FieldFault' });

export const ProblemSchema = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(PROBLEMS)),
    detail: z.string(),
    errors: z.array(FieldFault),
    operationId: Id.optional(),
    environmentId: Id.optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457, with a stable code' });
