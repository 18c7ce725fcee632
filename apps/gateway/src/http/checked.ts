import { type ParameterDecoratorOptions, StandardSchemaValidationPipe } from '@nestjs/common';
import type { z } from 'zod';
import { invalidRequest } from './field-faults.ts';

const pipe = new StandardSchemaValidationPipe({ exceptionFactory: invalidRequest });

/** For `@Body` and `@Query`. Given where it is needed: a pipe for all would cost every parameter of every request a wait. */
export function checked(schema: z.ZodType): ParameterDecoratorOptions {
  return { schema, pipes: [pipe] };
}
